package io.weft.spark.shuffle;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.weft.spark.LocalSpark;
import io.weft.spark.TaskTotals;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Spark's metrics of a shuffle through Weft equal those of its own shuffle. */
class RowsMetricsTest {
  private static final long ROWS = 10_000;

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark =
        LocalSpark.start(
            Map.of(
                "spark.sql.adaptive.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "true"));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @Test
  void taskMetricsCountTheSameRecordsAndBlocks() throws TimeoutException {
    TaskTotals sparks = totals(query -> spark.withSortShuffle(query));
    TaskTotals ours = totals(query -> spark.withWeft(query));
    assertThat(ours.recordsWritten()).isEqualTo(sparks.recordsWritten()).isEqualTo(ROWS);
    assertThat(ours.recordsRead()).isEqualTo(sparks.recordsRead()).isEqualTo(ROWS);
    assertThat(ours.localBlocks()).isEqualTo(sparks.localBlocks());
    assertThat(ours.remoteBlocks()).isZero();
    assertThat(ours.localBytes()).isEqualTo(ours.bytesWritten());
    assertThat(ours.bytesWritten()).isEqualTo(ROWS * (8 + rowBytes()));
    assertThat(ours.writeNanos()).isPositive();
  }

  @Test
  void onlyRecordsThatWereReadAreCounted() throws TimeoutException {
    TaskTotals ours =
        listen(() -> assertThat(rows(spark.session()).toJavaRDD().take(3)).hasSize(3));
    assertThat(ours.recordsRead()).isBetween(3L, ROWS - 1);
  }

  @Test
  void dataSizeIsSparks() {
    assertThat(spark.withWeft(RowsMetricsTest::dataSize))
        .isEqualTo(spark.withSortShuffle(RowsMetricsTest::dataSize))
        .isEqualTo(ROWS * rowBytes());
  }

  @Test
  void checksumsAreSparks() {
    assumeFalse(spark.session().version().startsWith("4.0."), "Spark 4.0 has no row checksums");
    List<Long> ours = spark.withWeft(RowsMetricsTest::checksums);
    assertThat(ours).hasSize(4).doesNotContain(0L).doesNotHaveDuplicates();
    assertThat(ours).isEqualTo(spark.withSortShuffle(RowsMetricsTest::checksums));
  }

  private static Dataset<Row> rows(SparkSession session) {
    return session.range(0, ROWS, 1, 4).selectExpr("id", "id % 10 k").repartition(6, col("k"));
  }

  /** A null mask and two longs. */
  private static long rowBytes() {
    return 3 * Long.BYTES;
  }

  private static long dataSize(SparkSession session) {
    Dataset<Row> rows = rows(session);
    assertThat(rows.queryExecution().toRdd().count()).isEqualTo(ROWS);
    return exchange(rows).metrics().apply("dataSize").value();
  }

  private static List<Long> checksums(SparkSession session) {
    Dataset<Row> rows = rows(session);
    assertThat(rows.queryExecution().toRdd().count()).isEqualTo(ROWS);
    int shuffleId = exchange(rows).shuffleDependency().shuffleId();
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    List<Long> checksums = new ArrayList<>();
    for (MapStatus status : tracker.shuffleStatuses().apply(shuffleId).mapStatuses()) {
      checksums.add(checksum(status));
    }
    return checksums;
  }

  private static long checksum(MapStatus status) {
    try {
      Method value = MapStatus.class.getMethod("checksumValue");
      return (Long) value.invoke(status);
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  private static ShuffleExchangeExec exchange(Dataset<Row> rows) {
    SparkPlan plan = rows.queryExecution().executedPlan();
    return (ShuffleExchangeExec) plan.find(node -> node instanceof ShuffleExchangeExec).get();
  }

  private static TaskTotals totals(Function<Function<SparkSession, Long>, Long> run)
      throws TimeoutException {
    return listen(
        () -> assertThat(run.apply(session -> rows(session).toJavaRDD().count())).isEqualTo(ROWS));
  }

  private static TaskTotals listen(Runnable job) throws TimeoutException {
    TaskTotals totals = new TaskTotals();
    spark.drainListeners();
    spark.session().sparkContext().addSparkListener(totals);
    job.run();
    spark.drainListeners();
    spark.session().sparkContext().removeSparkListener(totals);
    return totals;
  }
}
