package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.GpuSpark;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Reads of blocks on a GPU with adaptive partition specs, compared with Spark's own shuffle. */
class DeviceAdaptiveTest {
  @RegisterExtension
  static final GpuSpark SPARK =
      new GpuSpark(
          Map.of(
              "spark.sql.autoBroadcastJoinThreshold", "-1",
              "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "8k",
              "spark.sql.adaptive.skewJoin.skewedPartitionFactor", "2"));

  /** Most rows have one key. */
  private static Dataset<Row> skewed() {
    return SPARK
        .local()
        .session()
        .range(0, 20_000, 1, 4)
        .selectExpr("if(id < 18000, cast(7 as bigint), id) k", "id", "concat('row ', id) s");
  }

  private static Dataset<Row> small() {
    return SPARK.local().session().range(0, 500, 1, 2).selectExpr("id k", "id * 2 twice");
  }

  private static Dataset<Row> joined() {
    return WeftGpu.onDevice(skewed()).join(WeftGpu.onDevice(small()), "k");
  }

  /** Compares the rows with Spark's. Returns Weft's reads, all of blocks on the GPU. */
  private static List<AQEShuffleReadExec> reads(
      Map<String, String> settings, Supplier<Dataset<Row>> query) {
    settings.forEach(SPARK.local().session().conf()::set);
    try {
      List<String> expected = SPARK.local().withSortShuffle(s -> RowTexts.unordered(query.get()));
      Dataset<Row> ours = query.get();
      assertThat(RowTexts.unordered(ours)).isEqualTo(expected);
      List<WeftShuffleExchangeExec> exchanges = Plans.wefts(ours);
      assertThat(exchanges).isNotEmpty();
      for (WeftShuffleExchangeExec each : exchanges) {
        assertThat(each.metrics().apply(ExchangeMetrics.DEVICE_TABLES_READ).value()).isPositive();
      }
      return Plans.nodes(Plans.of(ours), AQEShuffleReadExec.class);
    } finally {
      settings.keySet().forEach(SPARK.local().session().conf()::unset);
    }
  }

  @Test
  void partitionsThatAreReadTogether() {
    assertThat(reads(Map.of(), () -> WeftGpu.onDevice(skewed()).repartition(col("k"))))
        .isNotEmpty()
        .allMatch(AQEShuffleReadExec::hasCoalescedPartition);
  }

  @Test
  void partitionsThatAreReadInParts() {
    assertThat(
            reads(
                Map.of("spark.sql.adaptive.advisoryPartitionSizeInBytes", "16k"),
                DeviceAdaptiveTest::joined))
        .isNotEmpty()
        .anyMatch(AQEShuffleReadExec::hasSkewedPartition);
  }

  @Test
  void mapOutputsThatAreReadWhereTheyLie() {
    assertThat(
            reads(
                Map.of("spark.sql.adaptive.autoBroadcastJoinThreshold", "10m"),
                DeviceAdaptiveTest::joined))
        .isNotEmpty()
        .anyMatch(AQEShuffleReadExec::isLocalRead);
  }
}
