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
 * Sends this executor's blocks to peers that ask over the network. Requests are answered and bytes
 * sent on the transport's event loops, straight from the arena; the shuffles in question are held
 * as long. Thread-safe.
 */
public final class BlockServer implements AutoCloseable {
  /** Spark's own default for the number of ports to try. */
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
   * How a server is reached, by whom, and how much it holds for them.
   *
   * @param maxServedBytes of answers that were opened and not sent to their end
   * @param maxServedBytesPerPeer of these, on one connection
   * @param connectTimeout of its transport's attempts to connect, where the user set none
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
   * Starts to listen; where a port is asked for and taken, on one of those that follow, as Spark's
   * own services do.
   *
   * @param arena for packed copies of chunks, where peers ask for them
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
    BlockRequests requests = new BlockRequests(answers, streams, packers(options.cores()));
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

  private static int packers(int cores) {
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

  /** The transport, for a client to be made of it. */
  public SparkTransport transport() {
    return transport;
  }

  /** What peers ask for beside blocks, and who answers it. */
  public PeerServices services() {
    return requests.services();
  }

  /** The port listened on. */
  public int port() {
    return server.getPort();
  }

  /** Streams to peers that hold memory now. */
  public int openStreams() {
    return streams.open();
  }

  /** Bytes of these streams. */
  public long servedBytes() {
    return budget.bytes();
  }

  /** Lets go of what peers opened and have not taken any of for so long. */
  public void dropStalled(Duration timeout) {
    streams.dropStalled(timeout.toNanos(), System.nanoTime());
  }

  /** Stops listening, ends all connections and waits shortly until nothing is being sent. */
  @Override
  public void close() {
    server.close();
    requests.close();
    requests.closeConnections(CLOSE_TIMEOUT_MILLIS);
    transport.close();
  }
}
