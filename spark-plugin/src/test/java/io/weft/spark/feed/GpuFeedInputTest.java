package io.weft.spark.feed;

import static org.apache.spark.sql.functions.expr;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.spark.DoubleGpus;
import io.weft.spark.GpuSpark;
import io.weft.spark.sql.WeftGpu;
import io.weft.testgpus.TestMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.apache.spark.api.java.function.FilterFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Feeds of queries that end on the GPU: exports to files, and plans that change as they run. */
class GpuFeedInputTest {
  @RegisterExtension
  static final GpuSpark SPARK =
      new GpuSpark(Map.of("spark.sql.extensions", EmptyStages.class.getName()));

  private static final AtomicInteger COMPUTED = new AtomicInteger();

  private static SparkSession session() {
    return SPARK.local().session();
  }

  /** A user's rule: a stage without rows becomes a plan without the stage. */
  public static final class EmptyStages
      extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    /** The constructor Spark calls. */
    public EmptyStages() {}

    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
      extensions.injectRuntimeOptimizerRule(session -> new EmptyRoot());
      return BoxedUnit.UNIT;
    }

    /** Replaces the last stage. */
    private static final class EmptyRoot extends Rule<LogicalPlan> {
      @Override
      public LogicalPlan apply(LogicalPlan plan) {
        boolean isEmpty =
            plan instanceof LogicalQueryStage stage
                && stage
                    .stats()
                    .rowCount()
                    .exists(count -> count.isValidInt() && count.toInt() == 0);
        return isEmpty ? LocalRelation$.MODULE$.apply(plan.output()) : plan;
      }
    }
  }

  private static boolean isNone(Row row) {
    COMPUTED.incrementAndGet();
    return row.isNullAt(0);
  }

  /** Another query, with ranks as a column, would run its exchanges a second time. */
  @ParameterizedTest
  @ValueSource(strings = {"", "id", "text"})
  void aQueryWhoseLastPlanLeavesTheGpuRunsOnce(String key) {
    COMPUTED.set(0);
    Dataset<Row> none =
        FeedData.rows(session(), 90, 3).filter((FilterFunction<Row>) GpuFeedInputTest::isNone);
    Dataset<Row> query = WeftGpu.onDevice(none).hint("rebalance", "id");
    WeftFeed feed = WeftFeed.shards(query, 1).batchRows(10).onGpus();
    List<Long> steps = (key.isEmpty() ? feed : feed.by(key)).train(FeedTask::steps);
    assertThat(query.queryExecution().executedPlan().toString()).contains("LocalTableScan");
    assertThat(steps).containsExactly(0L);
    assertThat(COMPUTED).hasValue(90);
  }

  /** All types that a table holds, with nulls. */
  private static Dataset<Row> types(long rows) {
    return session()
        .range(0, rows, 1, 3)
        .selectExpr(
            "id",
            "if(id % 3 = 0, null, concat('row ', id)) text",
            "if(id % 5 = 0, null, id % 2 = 0) flag",
            "cast(id % 100 as byte) tiny",
            "if(id % 7 = 0, null, cast(id as short)) small",
            "cast(id % 11 as int) number",
            "cast(id / 3 as float) single",
            "if(id % 4 = 0, null, id * 0.5d) twofold",
            "cast(id as decimal(12, 2)) money",
            "if(id % 6 = 0, null, cast(id as decimal(30, 6)) * -1000003) large",
            "date_add(date'2026-11-27', cast(id as int)) day",
            "timestamp_micros(id * 12345) moment",
            "if(id % 9 = 0, null, unhex(hex(id))) raw",
            "repeat('long ', cast(if(id = 5, 30000, id % 3) as int)) long",
            "array(cast(id as float), -1f) x",
            "transform(sequence(1, 40), i -> id * i) longs",
            "array(cast(id as short)) half",
            "cast(concat(lpad(id, 8, '0')) as binary) eight")
        .withColumn("longs", WeftTensors.column("longs", DataType.INT64, 4, 10))
        .withColumn("half", WeftTensors.column("half", DataType.BFLOAT16, 1))
        .withColumn("eight", WeftTensors.column("eight", DataType.FLOAT32, 2))
        .withColumn("x", WeftTensors.column("x", DataType.FLOAT32, 2));
  }

  private static List<byte[]> files(WeftFeed feed) throws IOException {
    List<byte[]> files = new ArrayList<>();
    try (FeedExport export = feed.export()) {
      for (FeedExport.Shard shard : export.shards()) {
        files.add(Files.readAllBytes(Path.of(shard.file())));
      }
    }
    return files;
  }

  private static void assertSameFiles(long rows, UnaryOperator<WeftFeed> settings)
      throws IOException {
    List<byte[]> expected = files(settings.apply(WeftFeed.shards(types(rows), 2).batchRows(16)));
    List<byte[]> found =
        files(settings.apply(WeftFeed.shards(WeftGpu.onDevice(types(rows)), 2).batchRows(16)));
    assertThat(found).hasSize(2).containsExactlyElementsOf(expected);
  }

  @Test
  void filesOfBatchesEqualThoseOfRows() throws IOException {
    for (long rows : new long[] {0, 1, 31, 1000}) {
      assertSameFiles(rows, feed -> feed.lastBatch(LastBatch.KEEP));
      assertSameFiles(rows, feed -> feed.by("text").lastBatch(LastBatch.KEEP));
      assertSameFiles(rows, feed -> feed.by("number", "raw", "large").lastBatch(LastBatch.KEEP));
    }
    assertSameFiles(1000, feed -> feed);
    assertSameFiles(1000, feed -> feed.shuffled(7));
    assertSameFiles(1000, feed -> feed.shuffled(7).by("large"));
  }

  /** Its type says so, and a null does not. */
  @Test
  void aTensorThatIsNullIsTheErrorThatItIsForRows() {
    Dataset<Row> nulls = types(100).withColumn("x", expr("if(id = 50, null, x)"));
    Dataset<Row> tensors = nulls.withColumn("x", WeftTensors.column("x", DataType.FLOAT32, 2));
    String message = "column x, row 17 of input partition 1: null is not float32[2]";
    assertThatThrownBy(() -> files(WeftFeed.shards(tensors, 2))).hasStackTraceContaining(message);
    assertThatThrownBy(() -> files(WeftFeed.shards(WeftGpu.onDevice(tensors), 2)))
        .hasStackTraceContaining(message);
  }

  /** Each batch is downloaded once. */
  @Test
  void aBatchIsCopiedToTheHostOnce() throws IOException {
    TestMachine.assumeDoubles(); // They count.
    Dataset<Row> rows = session().range(0, 50_000, 1, 2).toDF();
    long unused = DoubleGpus.controls().cudaDoubleBytesToHost();
    assertThat(files(WeftFeed.shards(WeftGpu.onDevice(rows), 2).by("id"))).hasSize(2);
    assertThat(DoubleGpus.controls().cudaDoubleBytesToHost())
        .isBetween(8 * 50_000L, 8 * 50_000L + 10_000);
  }
}
