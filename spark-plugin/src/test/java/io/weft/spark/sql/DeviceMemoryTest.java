package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.cuda.MemoryTier;
import io.weft.spark.GpuSpark;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * The memory of one task on a small GPU. Tasks are not retried, so none may wait for its own
 * memory.
 */
class DeviceMemoryTest {
  private static final String SUMS = "sum(hash(id, s)) h, count(*) n, count(distinct id) ids";

  @RegisterExtension
  static final GpuSpark SPARK =
      new GpuSpark(
          Map.of(
              "spark.master", "local[1,1]",
              "spark.weft.gpu.exchangeMemory", "16m",
              "spark.weft.gpu.pinnedMemory", "4m"));

  private static List<Row> sums(Dataset<Row> rows) {
    return rows.selectExpr(SUMS.split(", (?=count)")).collectAsList();
  }

  private static void assertExchanged(Dataset<Row> rows) {
    List<Row> expected = sums(rows);
    assertThat(sums(WeftGpu.onDevice(rows).repartition(4, col("id")))).isEqualTo(expected);
    assertThat(sums(WeftGpu.mapBatches(rows, rows.schema(), DeviceFunctions::copy)))
        .isEqualTo(expected);
  }

  /** About 40 MB in one batch of converted rows, on a GPU with room for 16 MB. */
  @Test
  void aBatchThatIsLargerThanTheDevice() {
    assertExchanged(
        SPARK
            .local()
            .session()
            .range(0, 4000, 1, 1)
            .selectExpr("id", "repeat(cast(id as string), 2500) s"));
  }

  @Test
  void smallRowsFollowedByLargeOnes() {
    assertExchanged(
        SPARK
            .local()
            .session()
            .range(0, 9000, 1, 1)
            .selectExpr("id", "if(id < 5000, null, repeat(cast(id as string), 2500)) s"));
  }

  /** A task that continues after its last batch holds no GPU memory. */
  @Test
  void theLastBatchIsFreedAtTheEndOfTheInput() {
    Dataset<Row> rows = SPARK.local().session().range(0, 1000, 1, 1).toDF();
    MapPartitionsFunction<Row, Long> spilling =
        all -> {
          all.forEachRemaining(row -> assertThat(row).isNotNull());
          DeviceExchange device = ExecutorGpu.current().exchange();
          while (device.tiers().spill(1) > 0) {
            assertThat(device.tiers().bytes(MemoryTier.DEVICE)).isNotNegative();
          }
          List<Long> left = new ArrayList<>();
          left.add(device.tiers().memory().takenBytes());
          return left.iterator();
        };
    Dataset<Row> exchanged = WeftGpu.onDevice(rows).repartition(1);
    assertThat(exchanged.mapPartitions(spilling, Encoders.LONG()).collectAsList())
        .containsExactly(0L);
    Dataset<Row> mapped = WeftGpu.mapBatches(rows, rows.schema(), DeviceFunctions::copy);
    assertThat(mapped.mapPartitions(spilling, Encoders.LONG()).collectAsList()).containsExactly(0L);
  }
}
