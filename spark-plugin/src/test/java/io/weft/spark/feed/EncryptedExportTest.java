package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.LocalSpark;
import io.weft.spark.StageAttempts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Exports of an executor whose only folder is on a disk, which Spark encrypts. */
class EncryptedExportTest {
  @TempDir Path folder;

  @Test
  void noFileIsWrittenUnencrypted() throws IOException, TimeoutException {
    Assumptions.assumeFalse(
        Files.getFileStore(folder).type().equals("tmpfs"), "the temporary folder is in memory");
    Map<String, String> settings =
        Map.of(
            "spark.io.encryption.enabled", "true", "spark.weft.memory.folder", folder.toString());
    try (LocalSpark spark = LocalSpark.start(settings)) {
      WeftFeed feed = WeftFeed.shards(FeedData.rows(spark.session(), 100, 3), 2).batchRows(10);
      StageAttempts attempts = new StageAttempts(spark.session().sparkContext());
      assertThatThrownBy(feed::export)
          .hasStackTraceContaining("would be unencrypted on disk in " + folder.toRealPath())
          .hasStackTraceContaining("spark.weft.memory.folder");
      assertThatThrownBy(() -> feed.train(task -> task.communicator().rank()))
          .hasStackTraceContaining("would be unencrypted on disk in " + folder.toRealPath());
      assertThat(attempts.repeated()).isEmpty();
      try (Stream<Path> files = Files.walk(folder)) {
        assertThat(files).noneMatch(file -> file.toString().endsWith(".arrow"));
      }
    }
  }
}
