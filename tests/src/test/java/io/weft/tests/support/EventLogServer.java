package io.weft.tests.support;

import java.nio.file.Path;
import java.time.Duration;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.history.FsHistoryProvider;
import org.apache.spark.deploy.history.HistoryServer;
import org.apache.spark.internal.config.package$;
import org.awaitility.Awaitility;
import scala.Option;

/** Spark's history server in this JVM, over a folder of event logs. Close stops it. */
public final class EventLogServer implements AutoCloseable {
  private final FsHistoryProvider provider;
  private final HistoryServer server;

  /** Starts the server on a free port of this host. */
  public EventLogServer(Path logs) {
    SparkConf conf =
        new SparkConf(false)
            .set("spark.history.fs.logDirectory", logs.toString())
            .set("spark.driver.host", "127.0.0.1");
    SecurityManager open =
        new SecurityManager(conf, Option.empty(), package$.MODULE$.AUTH_SECRET_FILE());
    provider = new FsHistoryProvider(conf);
    server = new HistoryServer(conf, provider, open, 0);
    server.bind();
    provider.start();
  }

  /** The address without a path. */
  public String address() {
    return "http://127.0.0.1:" + server.boundPort();
  }

  /** Waits for at most a minute until the server has read an application's log. */
  public void await(String application) {
    Awaitility.await()
        .atMost(Duration.ofMinutes(1))
        .until(() -> provider.getApplicationInfo(application).isDefined());
  }

  @Override
  public void close() {
    server.stop();
  }
}
