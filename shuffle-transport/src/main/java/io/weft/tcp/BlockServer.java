package io.weft.tcp;

import io.weft.catalog.BlockCatalog;
import io.weft.metrics.ExchangeCounters;
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
  private final SparkTransport transport;
  private final TransportServer server;

  private BlockServer(BlockRequests requests, SparkTransport transport, TransportServer server) {
    this.requests = requests;
    this.transport = transport;
    this.server = server;
  }

  /** How a server is reached and by whom. */
  public record Options(
      String executorId,
      String incarnation,
      String secretName,
      String bindHost,
      int port,
      int cores,
      SparkConf conf,
      SecurityManager security) {}

  /**
   * Starts to listen; where a port is asked for and taken, on one of those that follow, as Spark's
   * own services do.
   *
   * @throws RuntimeException if no port can be bound
   */
  public static BlockServer start(
      Options options, BlockCatalog catalog, ExchangeCounters counters) {
    TransportConf conf =
        SparkTransport.settings(options.conf(), options.security(), options.cores());
    BlockRequests requests =
        new BlockRequests(
            options.executorId(),
            options.incarnation(),
            catalog,
            new ServedStreams(conf.sslShuffleChunkSize()),
            counters);
    SparkTransport transport =
        new SparkTransport(conf, options.security(), options.secretName(), requests);
    try {
      return new BlockServer(requests, transport, bind(transport, options));
    } catch (RuntimeException e) {
      transport.close();
      throw e;
    }
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

  /** The port listened on. */
  public int port() {
    return server.getPort();
  }

  /** Streams to peers that hold memory now. */
  public int openStreams() {
    return requests.openStreams();
  }

  /** Stops listening, ends all connections and waits shortly until nothing is being sent. */
  @Override
  public void close() {
    server.close();
    requests.closeConnections(CLOSE_TIMEOUT_MILLIS);
    transport.close();
  }
}
