package io.weft.spark.sql;

import static io.weft.spark.sql.TensorFacts.tensor;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.spark_partition_id;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.spark.GpuSpark;
import io.weft.spark.feed.FeedBatch;
import io.weft.spark.feed.FeedBatches;
import io.weft.spark.feed.WeftFeed;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tensor columns in batches on a GPU, compared with Spark's own shuffle. */
class DeviceTensorsTest {
  private static final int ROWS = 2000;

  @RegisterExtension
  static final GpuSpark SPARK =
      new GpuSpark(
          Map.of(
              "spark.sql.autoBroadcastJoinThreshold", "-1",
              "spark.sql.execution.rangeExchange.sampleSizePerPartition", "10000",
              "spark.weft.gpu.exchangeMemory", "16m",
              "spark.weft.gpu.pinnedMemory", "4m"));

  private static Dataset<Row> facts(int rows) {
    return facts(rows, 3);
  }

  private static Dataset<Row> facts(int rows, int partitions) {
    return TensorFacts.of(SPARK.local(), rows, partitions);
  }

  private static List<String> texts(Dataset<Row> rows) {
    return RowTexts.unordered(rows.withColumn("partition", spark_partition_id()));
  }

  private static Dataset<Row> assertSame(
      UnaryOperator<Dataset<Row>> query, Dataset<Row> rows, boolean batchesExpected) {
    List<String> expected =
        SPARK.local().withSortShuffle(session -> texts(query.apply(WeftGpu.onDevice(rows))));
    Dataset<Row> ours =
        query.apply(WeftGpu.onDevice(rows)).withColumn("partition", spark_partition_id());
    assertThat(RowTexts.unordered(ours)).isEqualTo(expected);
    List<WeftShuffleExchangeExec> exchanges = Plans.wefts(ours);
    assertThat(exchanges).isNotEmpty();
    for (WeftShuffleExchangeExec each : exchanges) {
      assertThat(each.simpleString(2000)).contains("blocks on GPUs");
      assertThat(each.metrics().apply(ExchangeMetrics.DEVICE_TABLES_READ).value() > 0)
          .isEqualTo(batchesExpected);
    }
    return ours;
  }

  /** The GPU does not hash tensors, so the host computes their partitions. */
  @ParameterizedTest
  @ValueSource(strings = {"id", "k", "f", "d", "bytes", "never"})
  void everyTypeIsSupported(String key) {
    assertSame(rows -> rows.repartition(7, col(key), col("id")), facts(ROWS), true);
  }

  @Test
  void otherPartitionings() {
    assertSame(rows -> rows.repartition(1), facts(ROWS), true);
    assertSame(rows -> rows.repartitionByRange(4, col("k"), col("id").desc()), facts(ROWS), true);
    assertSame(rows -> rows.repartition(500, col("k")), facts(ROWS), true);
  }

  @Test
  void fewRowsAndNone() {
    assertSame(rows -> rows.repartition(40, col("id")), facts(1), true);
    assertSame(rows -> rows.repartition(3, col("id")), facts(ROWS).where("id < 0"), false);
  }

  @Test
  void fromExchangeToExchange() {
    Dataset<Row> twice =
        assertSame(
            rows -> WeftGpu.onDevice(rows.repartition(5, col("k"))).repartition(3, col("id")),
            facts(ROWS),
            true);
    assertThat(Plans.wefts(twice)).hasSize(2);
  }

  @Test
  void smallTablesOfManyMapTasks() {
    Dataset<Row> read = assertSame(rows -> rows.repartition(2, col("k")), facts(ROWS, 150), true);
    assertThat(Plans.wefts(read).get(0).metrics().apply(ExchangeMetrics.DEVICE_TABLES_READ).value())
        .isEqualTo(2);
  }

  @Test
  void readsOfAdaptiveExecution() {
    Dataset<Row> coalesced = assertSame(rows -> rows.repartition(col("k")), facts(ROWS), true);
    assertThat(Plans.nodes(Plans.of(coalesced), AQEShuffleReadExec.class)).isNotEmpty();
    Dataset<Row> keys = SPARK.local().session().range(0, ROWS, 3, 2).toDF();
    assertSame(rows -> rows.join(WeftGpu.onDevice(keys), "id"), facts(ROWS), true);
    SPARK.local().session().conf().set("spark.sql.adaptive.autoBroadcastJoinThreshold", "10m");
    try {
      assertSame(rows -> rows.join(WeftGpu.onDevice(keys), "id"), facts(ROWS), true);
    } finally {
      SPARK.local().session().conf().unset("spark.sql.adaptive.autoBroadcastJoinThreshold");
    }
  }

  /** About 40 MB of values, and as much of nulls, on a GPU with room for 16 MB. */
  @ParameterizedTest
  @ValueSource(strings = {"false", "id % 1000 > 0"})
  void moreThanTheDeviceHolds(String isNull) {
    Dataset<Row> wide =
        SPARK
            .local()
            .session()
            .range(0, 5000, 1, 4)
            .selectExpr(
                "id", "if(%s, null, array_repeat(cast(id as float), 2048)) x".formatted(isNull))
            .select(col("id"), tensor("x", DataType.FLOAT32, 2048));
    String[] sums = {"sum(hash(id, x)) h", "count(x) n", "count(distinct id) ids"};
    long before = GpuSpark.device().tiers().spilledBytes();
    List<Row> expected = wide.selectExpr(sums).collectAsList();
    assertThat(WeftGpu.onDevice(wide).repartition(8, col("id")).selectExpr(sums).collectAsList())
        .isEqualTo(expected);
    assertThat(GpuSpark.device().tiers().spilledBytes()).isGreaterThan(before);
  }

  @Test
  void aFeedReadsThem() {
    Dataset<Row> rows = facts(100).select("id", "f");
    List<ArrayList<Long>> fed =
        WeftFeed.shards(WeftGpu.onDevice(rows).repartition(3, col("id")), 2)
            .batchRows(10)
            .train(
                task -> {
                  ArrayList<Long> ids = new ArrayList<>();
                  try (FeedBatches batches = task.batches(0)) {
                    while (batches.hasNext()) {
                      FeedBatch batch = batches.next();
                      for (int row = 0; row < batch.rows(); row++) {
                        long id = batch.byteBuffer("id").getLong(8 * row);
                        assertThat(batch.byteBuffer("f").getFloat(24 * row + 20)).isEqualTo(id + 5);
                        ids.add(id);
                      }
                    }
                  }
                  return ids;
                });
    List<Long> all = new ArrayList<>();
    fed.forEach(all::addAll);
    Collections.sort(all);
    assertThat(all).isEqualTo(LongStream.range(0, 100).boxed().toList());
  }
}
