package io.weft.spark.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.LocalSpark;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An executor whose only folder is on a disk, which Spark encrypts. */
class EncryptedDiskWithoutMemoryTest {
  @TempDir Path folder;

  @Test
  void shufflesAreEncryptedAndCommunicatorsRefused() throws IOException {
    Assumptions.assumeFalse(
        Files.getFileStore(folder).type().equals("tmpfs"), "the temporary folder is in memory");
    Map<String, String> settings =
        Map.of(
            "spark.io.encryption.enabled", "true", "spark.weft.memory.folder", folder.toString());
    try (LocalSpark spark = LocalSpark.start(settings)) {
      assertThat(groups(spark.session())).isEqualTo(100);
      assertThat(LocalSpark.count(ExchangeCounter.BYTES_SPILLED))
          .as("all that was published")
          .isPositive()
          .isEqualTo(LocalSpark.count(ExchangeCounter.BYTES_PUBLISHED));
      assertThatThrownBy(
              () ->
                  BarrierJobs.run(
                      spark.session().sparkContext(),
                      1,
                      task -> WeftCollectives.communicator(task).toString()))
          .hasStackTraceContaining("would be unencrypted on disk in " + folder.toRealPath())
          .hasStackTraceContaining("spark.weft.memory.folder");
    }
  }

  private static long groups(SparkSession session) {
    return session.range(0, 1000, 1, 3).selectExpr("id % 100 AS k").groupBy("k").count().count();
  }
}
