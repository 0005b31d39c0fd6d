package io.weft.spark.rapids;

import io.netty.channel.ChannelFuture;
import io.weft.spark.rapids.ControlMessage.ControlHello;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.server.OneForOneStreamManager;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.util.TransportConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The control connections of this executor: those that it opens, and those that others open to its
 * management port. Thread-safe.
 */
final class ControlService implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ControlService.class);

  private final ControlHello own;
  private final ControlListener listener;
  private final TransportContext context;
  private final TransportClientFactory clients;
  private final Map<TransportClient, ControlChannel> channels = new ConcurrentHashMap<>();
  private TransportServer server;

  /**
   * Creates a service that does not listen yet.
   *
   * @param version of Weft
   * @param executor id of this executor
   */
  public ControlService(
      TransportConf conf, String version, long executor, ControlListener listener) {
    this.own = new ControlHello(version, executor, -1);
    this.listener = listener;
    this.context = new TransportContext(conf, new Handler());
    this.clients = context.createClientFactory(List.of());
  }

  /**
   * Starts the management port.
   *
   * @param host to bind to
   * @return the port, chosen by the system
   */
  public synchronized int listen(String host) {
    if (server != null) {
      throw new IllegalStateException("the management port is open: " + server.getPort());
    }
    server = context.createServer(host, 0, List.of());
    return server.getPort();
  }

  /**
   * Connects to another executor's management port and waits for its answer.
   *
   * @param wanted the expected executor
   * @throws IOException if no answer comes, or another executor answers; the message names it
   */
  public ControlChannel connect(long wanted, String host, int port, Duration timeout)
      throws IOException {
    try {
      TransportClient client = clients.createUnmanagedClient(host, port);
      ControlChannel channel = new ControlChannel(client);
      channels.put(client, channel);
      try {
        ControlHello hello = new ControlHello(own.version(), own.executor(), wanted);
        ControlHello answer =
            ControlHello.decode(client.sendRpcSync(hello.encode(), timeout.toMillis()));
        answer.check(own.version(), own.executor());
        return channel;
      } catch (RuntimeException e) {
        channels.remove(client);
        channel.close();
        throw e;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException(cannot(wanted, host, port) + "interrupted", e);
    } catch (IOException | RuntimeException e) {
      throw new IOException(cannot(wanted, host, port) + e.getMessage(), e);
    }
  }

  private String cannot(long wanted, String host, int port) {
    return "executor %d cannot connect to executor %d at %s:%d: "
        .formatted(own.executor(), wanted, host, port);
  }

  /** Runs on the transport's threads. */
  private final class Handler extends RpcHandler {
    private final StreamManager streams = new OneForOneStreamManager();

    @Override
    public void receive(TransportClient client, ByteBuffer message, RpcResponseCallback callback) {
      try {
        ControlHello hello = ControlHello.decode(message);
        hello.check(own.version(), own.executor());
        ControlChannel channel = new ControlChannel(client);
        channels.put(client, channel);
        listener.connected(channel, hello);
        callback.onSuccess(
            new ControlHello(own.version(), own.executor(), hello.executor()).encode());
      } catch (RuntimeException e) {
        LOG.warn("{} is refused: {}", client.getSocketAddress(), e.getMessage());
        callback.onFailure(e);
      }
    }

    @Override
    public void receive(TransportClient client, ByteBuffer message) {
      ControlChannel channel = channels.get(client);
      if (channel == null) {
        LOG.debug("A message of {}, which has not sent a hello", client.getSocketAddress());
        return;
      }
      try {
        listener.received(channel, ControlMessage.decode(message));
      } catch (RuntimeException e) {
        LOG.warn("The connection with {} ends: {}", channel, e.getMessage(), e);
        channel.close();
      }
    }

    @Override
    public void channelInactive(TransportClient client) {
      ControlChannel channel = channels.remove(client);
      if (channel != null) {
        listener.ended(channel);
      }
    }

    @Override
    public StreamManager getStreamManager() {
      return streams;
    }
  }

  /** Ends all connections and stops listening. */
  @Override
  public void close() {
    TransportServer last;
    synchronized (this) {
      last = server;
      server = null;
    }
    channels.values().forEach(ControlChannel::close);
    clients.close();
    if (last != null) {
      last.close();
    }
    context.close();
  }

  /** A connection for control messages. Thread-safe. */
  static final class ControlChannel {
    private final TransportClient client;

    ControlChannel(TransportClient client) {
      this.client = client;
    }

    /**
     * Sends a message, in order. Does not wait. The loss of a message is reported by the end of the
     * connection.
     */
    public void send(ControlMessage message) {
      client.send(message.encode());
    }

    /** Ends the connection. The listeners of both ends are notified. */
    public void close() {
      ChannelFuture unused = client.getChannel().close();
    }

    /** Whether the connection is open. Its end is reported a little later. */
    public boolean isActive() {
      return client.isActive();
    }

    /** The address of the other end. */
    @Override
    public String toString() {
      return String.valueOf(client.getSocketAddress());
    }
  }

  /** Gets the events of connections. Runs on the transport's threads and must not block them. */
  interface ControlListener {
    /**
     * A client has connected; its messages follow.
     *
     * @throws IllegalArgumentException to refuse it; the client gets the message
     */
    void connected(ControlChannel channel, ControlHello hello);

    /** A message has arrived. Messages of a connection come in order. */
    void received(ControlChannel channel, ControlMessage message);

    /** A connection has ended. No event of it follows. */
    void ended(ControlChannel channel);
  }
}
