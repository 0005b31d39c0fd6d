package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec$;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Shuffles of inputs without a partition. Adaptive execution runs no job for these. It creates the
 * shuffle in a thread that has no session, and never ends if that fails.
 */
@Timeout(120)
class NoPartitionsTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  /** The threads of adaptive execution's pool. */
  private static final int THREADS = 16;

  @BeforeAll
  static void tables() {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(SPARK.session().sparkContext());
    StructType schema =
        new StructType().add("k", DataTypes.LongType).add("s", DataTypes.StringType);
    SPARK.session().createDataFrame(context.emptyRDD(), schema).createOrReplaceTempView("rows");
    String path = folder.resolve("batches").toString();
    SPARK
        .session()
        .range(10)
        .selectExpr("id k", "concat('s', id) s", "id % 2 p")
        .write()
        .partitionBy("p")
        .parquet(path);
    SPARK
        .session()
        .read()
        .parquet(path)
        .where("p = 7")
        .select("k", "s")
        .createOrReplaceTempView("batches");
  }

  /** As after another application in this JVM, whose session these threads would have. */
  @BeforeEach
  void adaptiveExecutionHasThreadsWithoutSession() throws InterruptedException {
    CountDownLatch cleared = new CountDownLatch(THREADS);
    for (int i = 0; i < THREADS; i++) {
      AdaptiveSparkPlanExec$.MODULE$.executionContext().execute(() -> clearSession(cleared));
    }
    assertThat(cleared.await(60, TimeUnit.SECONDS)).isTrue();
  }

  /** Waits for the other threads, so that each thread runs this once. */
  private static void clearSession(CountDownLatch cleared) {
    SparkSession.clearActiveSession();
    cleared.countDown();
    try {
      cleared.await(60, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private record Shuffle(String name, UnaryOperator<Dataset<Row>> of) {
    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Shuffle> shuffles() {
    return Stream.of(
        new Shuffle("range", input -> input.orderBy("k")),
        new Shuffle("hash", input -> input.groupBy("k").count()),
        new Shuffle("hash of an expression", input -> input.repartition(3, col("k").plus(1))),
        new Shuffle("round robin", input -> input.repartition(3)),
        new Shuffle("single", input -> input.distinct().coalesce(1)),
        new Shuffle("join", input -> input.join(input.groupBy("s").count(), "s")));
  }

  @ParameterizedTest
  @MethodSource("shuffles")
  void end(Shuffle shuffle) {
    for (String table : List.of("rows", "batches")) {
      for (String route : List.of("auto", "rows", "columns")) {
        assertThat(result(shuffle, table, route)).as(table + " by " + route).isEmpty();
      }
    }
  }

  private static List<Row> result(Shuffle shuffle, String table, String route) {
    Map<String, String> settings =
        Map.of("spark.weft.route", route, "spark.sql.autoBroadcastJoinThreshold", "-1");
    return SPARK.with(
        settings,
        () -> {
          Dataset<Row> input = SPARK.session().table(table).selectExpr("k", "s", "k * 2 more");
          return shuffle.of().apply(input).collectAsList();
        });
  }
}
