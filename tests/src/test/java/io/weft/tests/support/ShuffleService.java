package io.weft.tests.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Map;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.ExternalShuffleService;
import scala.Option;

/** Spark's external shuffle service, in this JVM. */
public final class ShuffleService implements AutoCloseable {
  private final ExternalShuffleService service;
  private final Map<String, String> settings;

  private ShuffleService(ExternalShuffleService service, Map<String, String> settings) {
    this.service = service;
    this.settings = settings;
  }

  /** Starts a service on a free port. */
  public static ShuffleService start() {
    Map<String, String> settings =
        Map.of(
            "spark.shuffle.service.enabled",
            "true",
            "spark.shuffle.service.port",
            Integer.toString(freePort()));
    SparkConf conf = new SparkConf(false);
    settings.forEach(conf::set);
    // The service refuses executors whose local folders are not below its own.
    conf.set("spark.local.dir", BuildTree.target().toString());
    conf.set("spark.shuffle.service.db.enabled", "false");
    SecurityManager security =
        new SecurityManager(
            conf,
            Option.empty(),
            org.apache.spark.internal.config.package$.MODULE$.AUTH_SECRET_FILE());
    ExternalShuffleService service = new ExternalShuffleService(conf, security);
    service.start();
    return new ShuffleService(service, settings);
  }

  private static int freePort() {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The settings of an application that uses the service. */
  public Map<String, String> settings() {
    return settings;
  }

  @Override
  public void close() {
    service.stop();
  }
}
