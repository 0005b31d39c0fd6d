package io.weft.tcp;

import java.time.Duration;
import java.util.List;
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
 * Spark's network transport with the settings of its shuffle module, so that whatever the user set
 * for shuffles (authentication, encryption, TLS, threads, buffers) holds here as well. Owns the
 * transport context; the client factory and server made from it belong to the caller and are to be
 * closed first. Thread-safe.
 */
public final class SparkTransport implements AutoCloseable {
  private static final String MODULE = "shuffle";
  private static final String CONNECT_TIMEOUT = "spark.shuffle.io.connectionCreationTimeout";

  private final SecurityManager security;
  private final String secretName;
  private final TransportConf conf;
  private final TransportContext context;

  /**
   * Sets the transport up.
   *
   * @param conf as {@link #settings} gives it
   * @param secretName the same in every executor of the application; both ends of a connection
   *     prove that they know its secret
   * @param handler of requests that come in
   */
  SparkTransport(
      TransportConf conf, SecurityManager security, String secretName, RpcHandler handler) {
    this.security = security;
    this.secretName = secretName;
    this.conf = conf;
    this.context = new TransportContext(conf, handler);
  }

  /**
   * What the user set for shuffles.
   *
   * @param cores the executor may use, for the number of network threads, or 0 for all there are
   * @param connectTimeout of an attempt to connect, in whole seconds, where Spark's is not shorter;
   *     readers share an attempt, so one that outlives who began it would fail those after it
   */
  static TransportConf settings(
      SparkConf sparkConf, SecurityManager security, int cores, Duration connectTimeout) {
    SparkConf conf = sparkConf.clone();
    long seconds =
        Math.min(
            connectTimeout.plusMillis(999).toSeconds(),
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

  /** Makes a source of connections to servers. The caller closes it. */
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
}
