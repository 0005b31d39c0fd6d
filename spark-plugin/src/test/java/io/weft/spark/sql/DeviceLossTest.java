package io.weft.spark.sql;

import static io.weft.spark.sql.TensorFacts.tensor;
import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.device.DeviceCatalog;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.runtime.WeftExecutor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.spark.FetchFailed;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Map outputs that are no longer, or never were, on a GPU. */
class DeviceLossTest {
  private static LocalSpark spark;
  private static ExecutorGpu there;

  @BeforeAll
  static void start() {
    spark =
        DoubleGpus.start(
            Map.of(
                "spark.master", "local[1,4]",
                "spark.weft.route", "auto",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false"));
    there = ExecutorGpu.current();
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  private static Dataset<Row> rows() {
    return spark
        .session()
        .range(0, 3000, 1, 3)
        .selectExpr("id", "concat('row ', id) s", "if(id % 5 = 0, null, array(id, -id)) t")
        .select(col("id"), col("s"), tensor("t", DataType.INT64, 2));
  }

  /** Records Spark's fetch failures. */
  private static final class Losses extends SparkListener {
    final Queue<String> reasons = new ConcurrentLinkedQueue<>();

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (end.reason() instanceof FetchFailed failed) {
        reasons.add(failed.message());
      }
    }
  }

  /** The owner announced the block, so its loss is a fetch failure, not a task failure. */
  @Test
  void aBlockThatIsLostDuringARead() throws Exception {
    MapPartitionsFunction<Row, String> losing =
        all -> {
          TaskContext context = TaskContext.get();
          if (context.stageAttemptNumber() == 0 && context.partitionId() == 0) {
            DeviceCatalog catalog = ExecutorGpu.current().exchange().catalog();
            catalog.keys().forEach(catalog::remove);
          }
          List<String> found = new ArrayList<>();
          all.forEachRemaining(row -> found.add("" + row));
          return found.iterator();
        };
    Losses losses = new Losses();
    spark.session().sparkContext().addSparkListener(losses);
    try {
      Dataset<Row> exchanged = WeftGpu.onDevice(rows()).repartition(4, col("id"));
      assertThat(exchanged.mapPartitions(losing, Encoders.STRING()).collectAsList())
          .containsExactlyInAnyOrderElementsOf(
              rows().collectAsList().stream().map(row -> "" + row).toList());
      spark.drainListeners();
      assertThat(losses.reasons)
          .first()
          .asString()
          .contains("is not on the GPU of executor driver");
    } finally {
      spark.session().sparkContext().removeSparkListener(losses);
    }
  }

  /** A task of the second partition finds no GPU; later tasks find it again. */
  private static void switchGpu(int partition) {
    if (partition == 1) {
      ProbeOptions nowhere = ProbeOptions.defaults();
      new ExecutorGpu(
              new ExecutorGpu.Options(
                  "driver",
                  GpuEnd.without("a test has taken it"),
                  nowhere,
                  WeftExecutor.exchange(),
                  0,
                  0,
                  0,
                  Duration.ofSeconds(10)))
          .start();
    } else {
      there.start();
    }
  }

  /** The second of three map tasks finds no GPU. */
  @Test
  void outputsOnAGpuAndOnItsHost() {
    MapPartitionsFunction<Long, Long> switching =
        all -> {
          switchGpu(TaskContext.getPartitionId());
          return all;
        };
    Dataset<Row> rows =
        spark
            .session()
            .range(0, 3000, 1, 3)
            .mapPartitions(switching, Encoders.LONG())
            .selectExpr(
                "value",
                "concat('row ', value) s",
                "if(value % 5 = 0, null, array(value, -value)) t")
            .select(col("value"), col("s"), tensor("t", DataType.INT64, 2));
    try {
      Dataset<Row> exchanged = WeftGpu.onDevice(rows).repartition(4, col("value"));
      List<String> found = RowTexts.unordered(exchanged);
      assertThat(found)
          .isEqualTo(
              RowTexts.unordered(rows().withColumn("value", col("id")).select("value", "s", "t")));
      var metrics = Plans.wefts(exchanged).get(0).metrics();
      long written = metrics.apply(ExchangeMetrics.BATCHES_WRITTEN).value();
      long read = metrics.apply(ExchangeMetrics.BATCHES_READ).value();
      assertThat(metrics.apply(ExchangeMetrics.DEVICE_TABLES_WRITTEN).value())
          .isBetween(1L, written - 1);
      assertThat(metrics.apply(ExchangeMetrics.DEVICE_TABLES_READ).value()).isBetween(1L, read - 1);
    } finally {
      there.start();
    }
  }
}
