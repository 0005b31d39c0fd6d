package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.device.DeviceCatalog;
import io.weft.spark.GpuSpark;
import io.weft.spark.gpu.ExecutorGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Lost blocks on the GPU. Spark then assumes that their executor, this JVM, is lost. */
class DeviceAttemptsTest {
  @RegisterExtension
  static final GpuSpark SPARK = new GpuSpark(Map.of("spark.master", "local[2,4]"));

  /** A fetch failure names the block, its map task runs again, and the query completes. */
  @Test
  void aBlockThatIsLostIsComputedAgain() {
    Dataset<Row> rows = SPARK.local().session().range(0, 3000, 1, 3).selectExpr("id", "id % 7 k");
    Dataset<Row> exchanged = WeftGpu.onDevice(rows).repartition(4, col("k"));
    MapPartitionsFunction<Row, String> losing =
        all -> {
          DeviceCatalog catalog = ExecutorGpu.current().exchange().catalog();
          TaskContext context = TaskContext.get();
          if (context.stageAttemptNumber() == 0 && context.partitionId() == 0) {
            catalog.remove(catalog.keys().get(catalog.keys().size() - 1));
            throw new IllegalStateException("a task that fails once");
          }
          List<String> found = new ArrayList<>();
          all.forEachRemaining(row -> found.add("" + row));
          return found.iterator();
        };
    List<String> found =
        exchanged.mapPartitions(losing, Encoders.STRING()).collectAsList().stream()
            .sorted()
            .toList();
    assertThat(found)
        .isEqualTo(rows.collectAsList().stream().map(row -> "" + row).sorted().toList());
  }
}
