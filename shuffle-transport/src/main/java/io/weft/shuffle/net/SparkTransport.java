package io.weft.shuffle.net;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.crypto.AuthClientBootstrap;
import org.apache.spark.network.crypto.AuthServerBootstrap;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.util.TransportConf;
import scala.Option;
import scala.Some;

/**
 * Spark's network transport with the settings of its shuffle module. So the user's settings for
 * shuffles (authentication, encryption, TLS, threads, buffers) apply here as well. Owns the
 * transport context. The caller owns the client factory and the server made from it and closes them
 * first. Thread-safe.
 */
final class SparkTransport implements AutoCloseable {
  private static final String MODULE = "shuffle";
  private static final String CONNECT_TIMEOUT = "spark.shuffle.io.connectionCreationTimeout";

  /**
   * A living host's kernel answers in less, also if its executor is busy; Spark's default is 2 min.
   */
  private static final long MAX_CONNECT_SECONDS = 10;

  private final SecurityManager security;
  private final String secretName;
  private final TransportConf conf;
  private final TransportContext context;

  /**
   * Creates the transport.
   *
   * @param conf from {@link #settings}
   * @param secretName the same in every executor of the application; both ends of a connection
   *     prove that they know its secret
   * @param handler of incoming requests
   */
  SparkTransport(
      TransportConf conf, SecurityManager security, String secretName, RpcHandler handler) {
    this.security = security;
    this.secretName = secretName;
    this.conf = conf;
    this.context = new TransportContext(conf, handler);
  }

  /**
   * Returns the user's settings for shuffles.
   *
   * @param cores that the executor may use, for the number of network threads; 0 for all
   * @param connectTimeout of an attempt to connect, rounded up to whole seconds. Readers share an
   *     attempt, so one that outlasts its first reader's timeout would fail later readers. Spark's
   *     own timeout holds if it is shorter, and {@link #MAX_CONNECT_SECONDS} unless the user has
   *     set Spark's
   */
  static TransportConf settings(
      SparkConf sparkConf, SecurityManager security, int cores, Duration connectTimeout) {
    SparkConf conf = sparkConf.clone();
    long most = sparkConf.contains(CONNECT_TIMEOUT) ? Long.MAX_VALUE : MAX_CONNECT_SECONDS;
    long seconds =
        Math.min(
            Math.min(most, connectTimeout.plusMillis(999).toSeconds()),
            transport(sparkConf, security, cores).connectionCreationTimeoutMs() / 1000);
    return transport(conf.set(CONNECT_TIMEOUT, seconds + "s"), security, cores);
  }

  private static TransportConf transport(SparkConf conf, SecurityManager security, int cores) {
    return SparkTransportConf.fromSparkConf(
        conf, MODULE, cores, Option.empty(), Some.apply(security.getRpcSSLOptions()));
  }

  /** Spark's settings for the transport. */
  TransportConf conf() {
    return conf;
  }

  /** Starts a server. The caller closes it. */
  TransportServer createServer(String bindHost, int port) {
    return context.createServer(
        bindHost,
        port,
        security.isAuthenticationEnabled()
            ? List.of(new AuthServerBootstrap(conf, security))
            : List.of());
  }

  /** Creates a factory of connections to servers. The caller closes it. */
  TransportClientFactory createClientFactory() {
    return context.createClientFactory(
        security.isAuthenticationEnabled()
            ? List.of(
                new InPlaceReads.Bootstrap(), new AuthClientBootstrap(conf, secretName, security))
            : List.of(new InPlaceReads.Bootstrap()));
  }

  @Override
  public void close() {
    context.close();
  }

  /** Creates daemon threads with a common name prefix and a number. Thread-safe. */
  static final class DaemonThreads implements ThreadFactory {
    private final String prefix;
    private final AtomicInteger count = new AtomicInteger();

    DaemonThreads(String prefix) {
      this.prefix = prefix;
    }

    @Override
    public Thread newThread(Runnable task) {
      Thread thread = new Thread(task, prefix + count.getAndIncrement());
      thread.setDaemon(true);
      return thread;
    }
  }
}
