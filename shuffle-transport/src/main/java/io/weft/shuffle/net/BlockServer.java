package io.weft.shuffle.net;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.weft.memory.SharedArena;
import io.weft.shuffle.net.OpenBlocks.StreamId.DiscardStream;
import io.weft.shuffle.net.RequestAnswerer.ServedBudget;
import io.weft.shuffle.net.SparkTransport.DaemonThreads;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.store.BlockCatalog;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.util.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/**
 * Sends this executor's blocks to peers that request them over the network. The transport's event
 * loops answer requests and send bytes straight from the arena. The server holds the shuffles of a
 * stream until it is sent. Thread-safe.
 */
public final class BlockServer implements AutoCloseable {
  /** Spark's default for the number of ports to try. */
  private static final int PORT_RETRIES = 16;

  private static final long CLOSE_TIMEOUT_MILLIS = 5000;

  private final BlockRequests requests;
  private final ServedStreams streams;
  private final ServedBudget budget;
  private final SparkTransport transport;
  private final TransportServer server;

  private BlockServer(
      BlockRequests requests,
      ServedStreams streams,
      ServedBudget budget,
      SparkTransport transport,
      TransportServer server) {
    this.requests = requests;
    this.streams = streams;
    this.budget = budget;
    this.transport = transport;
    this.server = server;
  }

  /**
   * The address, security and limits of a server.
   *
   * @param maxServedBytes limit for the bytes of all answers that are open and not fully sent
   * @param maxServedBytesPerPeer the same limit for one connection
   * @param connectTimeout timeout of the transport's attempts to connect, if Spark's is not shorter
   */
  public record Options(
      String executorId,
      String incarnation,
      String secretName,
      String bindHost,
      int port,
      int cores,
      long maxServedBytes,
      long maxServedBytesPerPeer,
      Duration connectTimeout,
      SparkConf conf,
      SecurityManager security) {}

  /**
   * Starts to listen. If the configured port is in use, tries the ports after it, as Spark's
   * services do.
   *
   * @param arena memory for compressed copies of chunks
   * @throws RuntimeException if no port can be bound
   */
  public static BlockServer start(
      Options options, BlockCatalog catalog, SharedArena arena, ExchangeCounters counters) {
    TransportConf conf =
        SparkTransport.settings(
            options.conf(), options.security(), options.cores(), options.connectTimeout());
    ServedStreams streams = new ServedStreams(conf.sslShuffleChunkSize());
    ServedBudget budget =
        new ServedBudget(options.maxServedBytes(), options.maxServedBytesPerPeer());
    RequestAnswerer answers =
        new RequestAnswerer(
            options.executorId(),
            options.incarnation(),
            catalog,
            new BlockCompressor(arena),
            budget,
            streams,
            counters,
            arena.names());
    BlockRequests requests = new BlockRequests(answers, streams, compressors(options.cores()));
    SparkTransport transport =
        new SparkTransport(conf, options.security(), options.secretName(), requests);
    try {
      return new BlockServer(requests, streams, budget, transport, bind(transport, options));
    } catch (RuntimeException e) {
      requests.close();
      transport.close();
      throw e;
    }
  }

  private static int compressors(int cores) {
    return Math.max(1, cores > 0 ? cores : Runtime.getRuntime().availableProcessors());
  }

  private static TransportServer bind(SparkTransport transport, Options options) {
    int retries = options.conf().getInt("spark.port.maxRetries", PORT_RETRIES);
    return Utils.<TransportServer>startServiceOnPort(
            options.port(),
            port -> {
              TransportServer server = transport.createServer(options.bindHost(), (Integer) port);
              return new Tuple2<>(server, (Object) server.getPort());
            },
            retries,
            "Weft block server")
        ._1();
  }

  /** The transport, from which a client can be created. */
  public SparkTransport transport() {
    return transport;
  }

  /** The services that answer requests of peers that are not for blocks. */
  public PeerCallServer services() {
    return requests.services();
  }

  /** The port that the server listens on. */
  public int port() {
    return server.getPort();
  }

  /** The number of streams to peers that hold memory now. */
  public int openStreams() {
    return streams.open();
  }

  /** The bytes that these streams hold. */
  public long servedBytes() {
    return budget.bytes();
  }

  /** Closes the streams that made no progress within the timeout. */
  public void dropStalled(Duration timeout) {
    streams.dropStalled(timeout.toNanos(), System.nanoTime());
  }

  /**
   * Stops listening, closes all connections and waits at most 5 s until no stream is being sent.
   */
  @Override
  public void close() {
    server.close();
    requests.close();
    requests.closeConnections(CLOSE_TIMEOUT_MILLIS);
    transport.close();
  }

  /**
   * Receives the requests of peers. Each connection's event loop calls it and also sends the
   * answer. Requests that ask for compression take too long for an event loop: threads named {@code
   * weft-pack-<n>} answer them. Thread-safe.
   */
  static final class BlockRequests extends RpcHandler implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BlockRequests.class);

    private final RequestAnswerer answers;
    private final ServedStreams streams;
    private final PeerCallServer services = new PeerCallServer();
    private final ExecutorService compressors;
    private final Set<Channel> channels = ConcurrentHashMap.newKeySet();

    /**
     * Creates the handler.
     *
     * @param compressors number of threads that compress
     */
    BlockRequests(RequestAnswerer answers, ServedStreams streams, int compressors) {
      this.answers = answers;
      this.streams = streams;
      this.compressors = Executors.newFixedThreadPool(compressors, new DaemonThreads("weft-pack-"));
    }

    /** The services for requests that are not for blocks. */
    PeerCallServer services() {
      return services;
    }

    @Override
    public StreamManager getStreamManager() {
      return streams;
    }

    @Override
    public void channelActive(TransportClient client) {
      channels.add(client.getChannel());
    }

    @Override
    public void channelInactive(TransportClient client) {
      channels.remove(client.getChannel());
    }

    @Override
    public void receive(TransportClient client, ByteBuffer message, RpcResponseCallback callback) {
      if (ServiceMessage.matches(message)) {
        services.answer(message, callback);
        return;
      }
      Channel channel = client.getChannel();
      OpenBlocks request;
      try {
        request = OpenBlocks.decode(message);
      } catch (WireException e) {
        callback.onSuccess(answers.refuse(e));
        return;
      }
      if (request.compression() == Compression.NONE) {
        callback.onSuccess(answers.answer(channel, request));
      } else {
        answerCompressed(channel, request, callback);
      }
    }

    private void answerCompressed(
        Channel channel, OpenBlocks request, RpcResponseCallback callback) {
      try {
        compressors.execute(
            () -> {
              try {
                callback.onSuccess(answers.answer(channel, request));
              } catch (RuntimeException e) {
                callback.onFailure(e);
              }
              if (!channel.isActive()) {
                // The connection ended before this stream was registered, so close the stream now.
                streams.connectionTerminated(channel);
              }
            });
      } catch (RejectedExecutionException e) {
        callback.onSuccess(answers.refuse(e));
      }
    }

    /** Receives a message that has no answer. */
    @Override
    public void receive(TransportClient client, ByteBuffer message) {
      try {
        streams.decline(DiscardStream.decode(message).stream(), client.getChannel());
      } catch (WireException e) {
        LOG.warn("Message from {} ignored: {}", client.getSocketAddress(), e.getMessage());
      }
    }

    /** Stops the threads that compress. */
    @Override
    public void close() {
      compressors.shutdownNow();
    }

    /** Closes all connections and waits, at most the timeout for all, until their streams end. */
    void closeConnections(long timeoutMillis) {
      List<ChannelFuture> closing = channels.stream().map(Channel::close).toList();
      long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
      for (ChannelFuture channel : closing) {
        long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        if (!channel.awaitUninterruptibly(Math.max(0, left))) {
          LOG.warn("The connection {} did not close in {} ms", channel.channel(), timeoutMillis);
          continue;
        }
        streams.connectionTerminated(channel.channel());
      }
    }
  }
}
