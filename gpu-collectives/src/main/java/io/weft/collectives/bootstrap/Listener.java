package io.weft.collectives.bootstrap;

import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Accepts the connections of other ranks. A connection that does not prove that it belongs to the
 * communicator is refused, and never delays the others. For one thread.
 */
public final class Listener implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Listener.class);
  private static final int BACKLOG = 1024;

  /** The limit of connections that have sent no greeting yet. Beyond it the oldest is refused. */
  private static final int MAX_PENDING = 1024;

  private final ServerSocketChannel server;
  private final Deque<Pending> silent = new ArrayDeque<>();

  /** A connection whose greeting is incomplete. */
  private record Pending(SocketChannel channel, ByteBuffer greeting) {}

  private Listener(ServerSocketChannel server) {
    this.server = server;
  }

  /**
   * Listens on a port that the system chooses.
   *
   * @param host an address of this machine that the other ranks can reach
   */
  public static Listener open(String host) throws IOException {
    InetSocketAddress address = new InetSocketAddress(host, 0);
    if (address.isUnresolved() || address.getAddress().isAnyLocalAddress()) {
      throw new IOException(host + " is not an address at which other ranks can reach this one");
    }
    ServerSocketChannel server = ServerSocketChannel.open();
    try {
      server.bind(address, BACKLOG);
      server.configureBlocking(false);
      return new Listener(server);
    } catch (IOException | RuntimeException e) {
      server.close();
      throw new IOException("cannot listen on " + host + ": " + e.getMessage(), e);
    }
  }

  /** The address it listens on. */
  public InetSocketAddress address() throws IOException {
    return (InetSocketAddress) server.getLocalAddress();
  }

  /**
   * Waits for connections that ranks open to this one.
   *
   * @param expected the greetings that they must send
   * @return the connections that arrived before the deadline, all or fewer; the caller closes them
   */
  public Map<Greeting, SocketChannel> await(UniqueId id, Set<Greeting> expected, Deadline deadline)
      throws IOException {
    Map<Greeting, SocketChannel> welcome = new HashMap<>();
    try {
      boolean unused = DeadlinePoller.await(() -> admit(id, expected, welcome), deadline);
      return welcome;
    } catch (IOException | RuntimeException e) {
      for (SocketChannel channel : welcome.values()) {
        channel.close();
      }
      throw e;
    }
  }

  private boolean admit(UniqueId id, Set<Greeting> expected, Map<Greeting, SocketChannel> welcome)
      throws IOException {
    if (welcome.size() == expected.size()) {
      return true;
    }
    accept();
    for (int i = silent.size(); i > 0; i--) {
      Pending pending = silent.remove();
      try {
        if (hasGreeted(pending)) {
          admit(id, pending, expected, welcome);
        } else {
          silent.add(pending);
        }
      } catch (IOException e) {
        refuse(pending.channel(), e.getMessage());
      }
    }
    return welcome.size() == expected.size();
  }

  private void accept() throws IOException {
    for (SocketChannel channel = server.accept(); channel != null; channel = server.accept()) {
      channel.configureBlocking(false);
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
      silent.add(new Pending(channel, ByteBuffer.allocate(Greeting.BYTES)));
      if (silent.size() > MAX_PENDING) {
        refuse(
            silent.remove().channel(), "it sent no greeting, and too many connections are waiting");
      }
    }
  }

  private static boolean hasGreeted(Pending pending) throws IOException {
    if (pending.channel().read(pending.greeting()) < 0) {
      throw new EOFException("it closed the connection before its greeting was complete");
    }
    return !pending.greeting().hasRemaining();
  }

  private static void admit(
      UniqueId id, Pending pending, Set<Greeting> expected, Map<Greeting, SocketChannel> welcome)
      throws IOException {
    Greeting greeting = Greeting.decode(pending.greeting(), id);
    if (!expected.contains(greeting) || welcome.containsKey(greeting)) {
      throw new IOException("no rank expects " + greeting);
    }
    ByteBuffer answer = ByteBuffer.wrap(greeting.welcome(id));
    pending.channel().write(answer);
    if (answer.hasRemaining()) {
      throw new IOException("it does not accept its welcome");
    }
    welcome.put(greeting, pending.channel());
  }

  private static void refuse(SocketChannel channel, String reason) throws IOException {
    LOG.warn("refused a connection from {}: {}", channel.getRemoteAddress(), reason);
    channel.close();
  }

  /** Stops listening; connections that were handed out stay open. */
  @Override
  public void close() throws IOException {
    for (Pending pending : silent) {
      pending.channel().close();
    }
    silent.clear();
    server.close();
  }
}
