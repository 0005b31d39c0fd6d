package io.weft.tcp;

import io.weft.catalog.BlockCatalog;
import io.weft.memory.SharedArena;
import io.weft.metrics.ExchangeCounters;
import java.time.Duration;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.util.Utils;
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
    BlockAnswers answers =
        new BlockAnswers(
            options.executorId(),
            options.incarnation(),
            catalog,
            new Packing(arena),
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
  public PeerServices services() {
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
}
