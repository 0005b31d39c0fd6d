package io.weft.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.ExchangeStatistics;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.runtime.WeftExecutor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** A Spark application with two threads in this JVM and Weft's plugin. Close stops it. */
public final class LocalSpark implements AutoCloseable {
  private static final String ENABLED = "spark.weft.enabled";

  private final SparkSession session;

  private LocalSpark(SparkSession session) {
    this.session = session;
  }

  /** Starts an application with further settings. */
  public static LocalSpark start(Map<String, String> settings) {
    SparkSession.clearActiveSession();
    SparkSession.clearDefaultSession();
    SparkSession.Builder builder =
        SparkSession.builder()
            .master("local[2]")
            .appName("weft-test")
            .config("spark.plugins", WeftPlugin.class.getName())
            .config("spark.driver.host", "localhost")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "5")
            // Room for the compiled code of all queries of a class.
            .config("spark.sql.codegen.cache.maxEntries", "2000")
            // Tests of failures must not fall back to Spark's shuffle.
            .config("spark.weft.fallback.failures", "0")
            .config("spark.weft.route", "rows");
    settings.forEach(builder::config);
    return new LocalSpark(builder.getOrCreate());
  }

  public SparkSession session() {
    return session;
  }

  /** Statistics of the exchange of this JVM. */
  public static ExchangeStatistics statistics() {
    return WeftExecutor.current().orElseThrow().statistics();
  }

  /** A counter of the exchange of this JVM. */
  public static long count(ExchangeCounter counter) {
    return statistics().get(counter);
  }

  /** Runs a query with Spark's sort shuffle. */
  public <T> T withSortShuffle(Function<SparkSession, T> query) {
    session.conf().set(ENABLED, "false");
    try {
      return query.apply(session);
    } finally {
      session.conf().set(ENABLED, "true");
    }
  }

  /** Runs a query through Weft. Fails if no shuffle used Weft. */
  public <T> T withWeft(Function<SparkSession, T> query) {
    long before = count(ExchangeCounter.OUTPUTS_PUBLISHED);
    T result = query.apply(session);
    assertThat(count(ExchangeCounter.OUTPUTS_PUBLISHED)).isGreaterThan(before);
    return result;
  }

  /** Fails unless a query gives the same rows, in the same partitions, with Weft and with Spark. */
  public void assertSameRows(Function<SparkSession, Dataset<Row>> query) {
    List<String> sparks = withSortShuffle(session -> rows(query.apply(session)));
    List<String> ours = withWeft(session -> rows(query.apply(session)));
    assertThat(ours).isEqualTo(sparks);
  }

  private static List<String> rows(Dataset<Row> rows) {
    return rows.selectExpr("spark_partition_id() partition", "*").toJSON().collectAsList().stream()
        .sorted()
        .toList();
  }

  /** Waits until Spark's listeners have received all events. */
  public void drainListeners() throws TimeoutException {
    session.sparkContext().listenerBus().waitUntilEmpty(60_000);
  }

  @Override
  public void close() {
    session.stop();
  }
}
