package io.weft.device.descriptor;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;

/**
 * Receives descriptors from another process of the same user on this host. Used by one thread at a
 * time.
 *
 * <p>The receiver opens an inbox and passes its address in a way that others cannot read. The
 * sender {@link #send sends} and then notifies the receiver, which takes the descriptors. No call
 * waits.
 */
public final class DescriptorInbox implements AutoCloseable {
  private static final int UNIX = 1;
  private static final int WITH_BORDERS = 5;
  private static final int NOT_BLOCKING = 0x800;
  private static final int CLOSE_ON_EXEC = 0x80000;
  private static final int BACKLOG = 16;

  /** More than the socket's backlog, so that many connections cannot block the receiver. */
  private static final int MOST_CONNECTIONS = 2 * BACKLOG;

  private static final int SOCKET_LEVEL = 1;
  private static final int PEER_CREDENTIALS = 17;

  private final InboxAddress address;
  private final Descriptor socket;

  private DescriptorInbox(InboxAddress address, Descriptor socket) {
    this.address = address;
    this.socket = socket;
  }

  /**
   * Opens an inbox with a new name.
   *
   * @throws UncheckedIOException when the system has no more sockets
   * @throws io.weft.device.library.UnavailableLibraryException without JNA or on another system
   */
  public static DescriptorInbox open() {
    Descriptor socket = socket();
    try {
      InboxAddress address = InboxAddress.random();
      byte[] name = address.socketAddress();
      LibcFunctions.check(
          LibcFunctions.bind(socket.number(), name, name.length), "naming a socket");
      LibcFunctions.check(LibcFunctions.listen(socket.number(), BACKLOG), "listening on a socket");
      return new DescriptorInbox(address, socket);
    } catch (RuntimeException e) {
      socket.close();
      throw e;
    }
  }

  private static Descriptor socket() {
    LibcFunctions.load();
    int type = WITH_BORDERS | NOT_BLOCKING | CLOSE_ON_EXEC;
    return Descriptor.of(
        (int) LibcFunctions.check(LibcFunctions.socket(UNIX, type, 0), "opening a socket"));
  }

  /** The address for the sender. */
  public InboxAddress address() {
    return address;
  }

  /**
   * Sends a copy of a descriptor to an inbox of this or another process.
   *
   * @param descriptor stays the caller's
   * @throws UncheckedIOException when the inbox does not exist, is full, or belongs to another user
   */
  public static void send(InboxAddress to, Descriptor descriptor) {
    byte[] name = to.socketAddress();
    String what = "the inbox " + to.name();
    try (Descriptor socket = socket();
        DescriptorMessage message = DescriptorMessage.with(to.tokenBytes(), descriptor)) {
      LibcFunctions.check(
          LibcFunctions.connect(socket.number(), name, name.length), "connecting to " + what);
      int user = userOf(socket);
      if (user != LibcFunctions.geteuid()) {
        throw new UncheckedIOException(
            new IOException(
                what
                    + " is of user "
                    + user
                    + ", not "
                    + LibcFunctions.geteuid()
                    + " as this process"));
      }
      message.send(socket.number(), what);
    }
  }

  /** The user of a socket's other end, at the time it was opened. */
  private static int userOf(Descriptor socket) {
    int[] credentials = new int[3];
    int[] bytes = {credentials.length * Integer.BYTES};
    LibcFunctions.check(
        LibcFunctions.getsockopt(
            socket.number(), SOCKET_LEVEL, PEER_CREDENTIALS, credentials, bytes),
        "reading the other end's user");
    return credentials[1];
  }

  /**
   * Takes the descriptor of a sender that knows the address. Descriptors of other senders and of
   * other users are closed.
   *
   * @throws IllegalStateException when there is no descriptor
   * @throws UncheckedIOException when the process cannot open another descriptor
   */
  public Descriptor receive() {
    for (int i = 0; i < MOST_CONNECTIONS; i++) {
      int connection = LibcFunctions.accept4(socket.number(), 0, 0, NOT_BLOCKING | CLOSE_ON_EXEC);
      if (connection < 0 && LibcFunctions.wasEmpty()) {
        break;
      }
      LibcFunctions.check(connection, "accepting a connection of the inbox " + address.name());
      try (Descriptor accepted = Descriptor.of(connection)) {
        List<Descriptor> arrived = take(accepted);
        if (!arrived.isEmpty()) {
          arrived.subList(1, arrived.size()).forEach(Descriptor::close);
          return arrived.get(0);
        }
      }
    }
    throw new IllegalStateException("no descriptor came to the inbox " + address.name());
  }

  private List<Descriptor> take(Descriptor connection) {
    if (userOf(connection) != LibcFunctions.geteuid()) {
      return List.of();
    }
    try (DescriptorMessage message = DescriptorMessage.empty()) {
      return message.receive(connection.number(), address.tokenBytes());
    }
  }

  /** Closes the inbox and the descriptors that were not taken. */
  @Override
  public void close() {
    socket.close();
  }
}
