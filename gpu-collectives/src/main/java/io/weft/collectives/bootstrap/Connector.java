package io.weft.collectives.bootstrap;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.security.MessageDigest;
import java.util.List;

/**
 * One connection that this rank opens to another. Sending the greeting and awaiting the welcome are
 * two steps, so that a rank can greet all others before it waits for any. For one thread.
 */
public final class Connector implements AutoCloseable {
  private final UniqueId id;
  private final Greeting greeting;
  private final InetSocketAddress address;
  private final SocketChannel channel;

  private Connector(
      UniqueId id, Greeting greeting, InetSocketAddress address, SocketChannel channel) {
    this.id = id;
    this.greeting = greeting;
    this.address = address;
    this.channel = channel;
  }

  /**
   * Connects and sends the greeting.
   *
   * @throws CollectiveException naming the other rank
   */
  public static Connector greet(
      UniqueId id, Greeting greeting, InetSocketAddress address, Deadline deadline)
      throws IOException {
    Connector connector = new Connector(id, greeting, address, SocketChannel.open());
    try {
      connector.connect(deadline);
      return connector;
    } catch (IOException e) {
      connector.close();
      throw connector.broken(e);
    } catch (RuntimeException e) {
      connector.close();
      throw e;
    }
  }

  private void connect(Deadline deadline) throws IOException {
    channel.configureBlocking(false);
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
    boolean unused = channel.connect(address);
    await(channel::finishConnect, "accept a connection", deadline);
    ByteBuffer message = ByteBuffer.wrap(greeting.encode(id));
    await(
        () -> {
          channel.write(message);
          return !message.hasRemaining();
        },
        "accept a greeting",
        deadline);
  }

  private void await(DeadlinePoller.Attempt attempt, String what, Deadline deadline)
      throws IOException {
    if (!DeadlinePoller.await(attempt, deadline)) {
      throw new CollectiveException(
          Kind.TIMEOUT,
          List.of(greeting.to()),
          name() + " did not " + what + " from rank " + greeting.from() + " within " + deadline);
    }
  }

  private String name() {
    return "rank " + greeting.to() + " at " + address;
  }

  /**
   * Waits for the welcome.
   *
   * @return the socket, which the caller owns from now on
   * @throws CollectiveException naming the other rank
   */
  public SocketChannel awaitWelcome(Deadline deadline) {
    ByteBuffer answer = ByteBuffer.allocate(Greeting.WELCOME_BYTES);
    try {
      await(() -> read(answer), "welcome a connection", deadline);
    } catch (IOException e) {
      throw broken(e);
    }
    if (!MessageDigest.isEqual(answer.array(), greeting.welcome(id))) {
      throw new CollectiveException(
          Kind.MISMATCH,
          List.of(greeting.to()),
          name() + " does not belong to communicator " + id + ": its welcome is wrong");
    }
    return channel;
  }

  private boolean read(ByteBuffer answer) throws IOException {
    if (channel.read(answer) < 0) {
      throw new EOFException("it refused the connection");
    }
    return !answer.hasRemaining();
  }

  private CollectiveException broken(IOException cause) {
    return new CollectiveException(
        Kind.DEAD,
        List.of(greeting.to()),
        "rank " + greeting.from() + " cannot connect to " + name() + ": " + cause.getMessage(),
        cause);
  }

  /** Closes the socket, even one that was handed out. For set-ups that failed. */
  @Override
  public void close() throws IOException {
    channel.close();
  }
}
