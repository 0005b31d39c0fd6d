package io.weft.device.cuda;

import io.weft.memory.Memory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
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
  private static final int MAX_CONNECTIONS = 2 * BACKLOG;

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
   * @throws io.weft.device.UnavailableLibraryException without JNA or on another system
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
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
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

  /**
   * One message with one descriptor: the struct msghdr of 64-bit Linux and its contents, in one
   * block of native memory. Used by one thread at a time.
   */
  static final class DescriptorMessage implements AutoCloseable {
    private static final int BODY_BYTES = 16;
    private static final int MAX_DESCRIPTORS = 2;

    private static final long VECTOR = 16;
    private static final long VECTORS = 24;
    private static final long CONTROL = 32;
    private static final long CONTROL_BYTES = 40;
    private static final long FLAGS = 48;
    private static final long HEADER_BYTES = 56;

    private static final long VECTOR_AT = HEADER_BYTES;
    private static final long BODY_AT = VECTOR_AT + 16;
    private static final long CONTROL_AT = BODY_AT + BODY_BYTES;
    private static final long CONTROL_HEAD = 16;
    private static final long BYTES = CONTROL_AT + CONTROL_HEAD + 4 * MAX_DESCRIPTORS;

    private static final int SOCKET_LEVEL = 1;
    private static final int RIGHTS = 1;
    private static final int CUT_OFF = 0x8;
    private static final int DONT_WAIT = 0x40;
    private static final int NO_SIGNAL = 0x4000;
    private static final int CLOSE_ON_EXEC = 0x40000000;

    private final long address = Memory.allocate(BYTES);

    private DescriptorMessage(long controlBytes) {
      Memory.setMemory(address, BYTES, (byte) 0);
      Memory.putLong(address + VECTOR, address + VECTOR_AT);
      Memory.putLong(address + VECTORS, 1);
      Memory.putLong(address + VECTOR_AT, address + BODY_AT);
      Memory.putLong(address + VECTOR_AT + 8, BODY_BYTES);
      Memory.putLong(address + CONTROL, address + CONTROL_AT);
      Memory.putLong(address + CONTROL_BYTES, controlBytes);
    }

    /** Creates a message to send. */
    static DescriptorMessage with(byte[] body, Descriptor descriptor) {
      int number = descriptor.number();
      DescriptorMessage message = new DescriptorMessage(CONTROL_HEAD + 8);
      long control = message.address + CONTROL_AT;
      Memory.copyFrom(body, Memory.BYTE_ARRAY, message.address + BODY_AT, BODY_BYTES);
      Memory.putLong(control, CONTROL_HEAD + 4);
      Memory.putInt(control + 8, SOCKET_LEVEL);
      Memory.putInt(control + 12, RIGHTS);
      Memory.putInt(control + CONTROL_HEAD, number);
      return message;
    }

    /** Creates a message to receive into. */
    static DescriptorMessage empty() {
      return new DescriptorMessage(BYTES - CONTROL_AT);
    }

    /** Sends the message; a full socket is an error. */
    void send(int socket, String to) {
      long sent = LibcFunctions.sendmsg(socket, address, DONT_WAIT | NO_SIGNAL);
      LibcFunctions.check(sent, "sending a descriptor to " + to);
    }

    /**
     * Receives a message.
     *
     * @return the descriptors of a message with this body, at most two. For any other message the
     *     descriptors are closed and the list is empty
     */
    List<Descriptor> receive(int socket, byte[] body) {
      long received = LibcFunctions.recvmsg(socket, address, DONT_WAIT | CLOSE_ON_EXEC);
      if (received < 0) {
        return List.of();
      }
      List<Descriptor> descriptors = descriptors();
      byte[] arrived = new byte[BODY_BYTES];
      Memory.copyTo(address + BODY_AT, arrived, Memory.BYTE_ARRAY, BODY_BYTES);
      if (received == BODY_BYTES && Arrays.equals(arrived, body)) {
        requireWhole(descriptors);
        return descriptors;
      }
      descriptors.forEach(Descriptor::close);
      return List.of();
    }

    /** Checks that the system did not omit a descriptor because the process has too many. */
    private void requireWhole(List<Descriptor> descriptors) {
      if (descriptors.isEmpty() && (Memory.getInt(address + FLAGS) & CUT_OFF) != 0) {
        throw new UncheckedIOException(
            new IOException("this process cannot open a received descriptor: too many are open"));
      }
    }

    private List<Descriptor> descriptors() {
      List<Descriptor> descriptors = new ArrayList<>();
      long control = address + CONTROL_AT;
      boolean isThere =
          Memory.getLong(address + CONTROL_BYTES) >= CONTROL_HEAD + 4
              && Memory.getInt(control + 8) == SOCKET_LEVEL
              && Memory.getInt(control + 12) == RIGHTS;
      long count = isThere ? (Memory.getLong(control) - CONTROL_HEAD) / 4 : 0;
      for (int i = 0; i < count; i++) {
        descriptors.add(Descriptor.of(Memory.getInt(control + CONTROL_HEAD + 4L * i)));
      }
      return descriptors;
    }

    @Override
    public void close() {
      Memory.free(address);
    }
  }
}
