package io.weft.spark.sql;

import static io.weft.spark.sql.TensorFacts.tensor;
import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.spark.LocalSpark;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Without a GPU, or with GPUs disabled, batches stay on the host, and the reason is reported. */
class DeviceWithoutGpuTest {
  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark =
        LocalSpark.start(
            Map.of(
                "spark.weft.route", "auto",
                "spark.weft.transport", "shm",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false"));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  private static Dataset<Row> rows() {
    return spark
        .session()
        .range(0, 1000, 1, 3)
        .selectExpr("id", "concat('text ', id) s", "if(id % 5 = 0, null, array(id, -id)) t")
        .select(col("id"), col("s"), tensor("t", DataType.INT64, 2));
  }

  @Test
  void rowsGoBetweenHosts() {
    Dataset<Row> exchanged = WeftGpu.onDevice(rows()).repartition(4, col("id"));
    assertThat(RowTexts.unordered(exchanged)).isEqualTo(RowTexts.unordered(rows()));
    assertThat(Plans.nodes(Plans.of(exchanged), DeviceUploadExec.class)).isEmpty();
    assertThat(Plans.of(exchanged).toString()).doesNotContain("GPUs");
    WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
    assertThat(manager.hostExchanges().counts()).containsKey("spark.weft.transport is not auto");
  }

  @Test
  void whereWeftIsOffNothingIsUploaded() {
    spark.withSortShuffle(
        session -> {
          Dataset<Row> exchanged = WeftGpu.onDevice(rows()).repartition(4, col("id"));
          assertThat(exchanged.collectAsList()).hasSize(1000);
          assertThat(Plans.nodes(Plans.of(exchanged), DeviceUploadExec.class)).isEmpty();
          assertThat(Plans.wefts(exchanged)).isEmpty();
          return null;
        });
  }

  @Test
  void aFunctionFailsWithTheReason() {
    assertThatThrownBy(
            () ->
                WeftGpu.mapBatches(rows(), rows().schema(), DeviceFunctions::copy).collectAsList())
        .hasStackTraceContaining(
            "executor driver has no GPU for arrays: spark.weft.transport is not auto");
  }

  /** On a machine without a GPU driver the same plan runs, and no driver binding is loaded. */
  @Test
  void nothingOfTheDriverIsLoaded(@TempDir Path folder) throws Exception {
    String classes = GpulessProcess.loadedClasses(folder);
    assertThat(classes).contains("] io.weft.spark.sql.DeviceShuffleReader ");
    for (String forbidden :
        List.of(
            "com.sun.jna",
            "io.weft.device.NativeBinding",
            "io.weft.device.cuda.CudaLibrary",
            "io.weft.device.cuda.CudaDevice",
            "io.weft.spark.gpu.SharedGpu",
            "io.weft.spark.gpu.cudf",
            "ai.rapids",
            "io.weft.collectives.nccl")) {
      assertThat(classes).doesNotContain("] " + forbidden);
    }
  }
}
