package io.weft.examples.etl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.WeftPlugin;
import io.weft.testgpus.TestMachine;
import java.io.IOException;
import java.nio.file.Path;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The training of {@code weft gpu-train} on two executors that share the first GPU. Run by {@code
 * tests/gpu/run}, which puts Spark's jars into SPARK_HOME; the build has {@code GpuTrainingTest}
 * instead.
 */
class TwoTrainingExecutors {
  private static final int ROWS = 100_000;
  private static final int EPOCHS = 3;

  @TempDir Path folder;

  private SparkSession start() {
    SparkSession.Builder builder =
        SparkSession.builder()
            .master("local-cluster[2,1,1024]")
            .appName("weft-two-training-executors")
            .config("spark.plugins", WeftPlugin.class.getName())
            .config("spark.executor.extraClassPath", System.getProperty("surefire.test.class.path"))
            .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
            .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "60s")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            // The default's native code is not in a folder that was packed for a GPU machine.
            .config("spark.sql.parquet.compression.codec", "uncompressed");
    if (!TestMachine.isReal()) {
      builder.config("spark.executorEnv.LD_LIBRARY_PATH", TestMachine.doubles().toString());
    }
    return builder.getOrCreate();
  }

  @Test
  void featuresAreThoseOfSparkAndTheModelLearnsFromThem() throws IOException {
    TestMachine.assume(1);
    try (SparkSession session = start()) {
      GpuTraining.Outcome outcome =
          new GpuTraining(folder.toString(), ROWS, 2, 500, EPOCHS).run(session);
      System.out.println(outcome);
      assertThat(outcome.different()).as("rows that differ from Spark's").isZero();
      assertThat(outcome.rows()).isEqualTo(ROWS);
      assertThat(outcome.trained()).isEqualTo((long) ROWS * EPOCHS);
      assertThat(outcome.lastLoss()).isLessThan(outcome.firstLoss() - 0.1);
    }
  }
}
