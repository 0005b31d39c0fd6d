package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.spark.LocalSpark;
import io.weft.spark.runtime.WeftExecutor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.ipc.ArrowFileReader;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files for other processes, read by Arrow Java and by Arrow JavaScript. */
class FeedExportTest {
  private static LocalSpark spark;

  @TempDir Path folder;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of());
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  private static WeftFeed feed(int rows) {
    return WeftFeed.shards(FeedData.rows(spark.session(), rows, 3), 2).batchRows(10);
  }

  private static List<Long> range(long rows) {
    return LongStream.range(0, rows).boxed().toList();
  }

  @Test
  void arrowsOwnReaderFindsEveryRowOnce() throws IOException {
    List<Long> ids = new ArrayList<>();
    try (FeedExport export = feed(205).lastBatch(LastBatch.KEEP).export();
        BufferAllocator allocator = new RootAllocator()) {
      for (FeedExport.Shard shard : export.shards()) {
        try (var file = Files.newByteChannel(Path.of(shard.file()));
            ArrowFileReader reader = new ArrowFileReader(file, allocator)) {
          assertThat(reader.getRecordBlocks()).hasSize(shard.batches());
          long rows = 0;
          while (reader.loadNextBatch()) {
            BigIntVector id = (BigIntVector) reader.getVectorSchemaRoot().getVector("id");
            rows += id.getValueCount();
            for (int row = 0; row < id.getValueCount(); row++) {
              ids.add(id.get(row));
            }
          }
          assertThat(rows).isEqualTo(shard.rows());
          assertThat(Files.size(Path.of(shard.file()))).isEqualTo(shard.bytes());
        }
      }
    }
    assertThat(ids).containsExactlyInAnyOrderElementsOf(range(205));
  }

  @Test
  void theManifestDescribesTheShards() throws IOException {
    try (FeedExport export = feed(200).export()) {
      Path file = folder.resolve("manifest.json");
      export.writeManifest(file);
      JsonNode manifest = new ObjectMapper().readTree(file.toFile());
      assertThat(manifest.get("ranks").asInt()).isEqualTo(2);
      assertThat(manifest.get("batchRows").asInt()).isEqualTo(10);
      assertThat(manifest.get("rows").asLong()).isEqualTo(200);
      assertThat(manifest.get("tensors").get("x").toString())
          .isEqualTo("{\"dtype\":\"float32\",\"shape\":[2,3]}");
      assertThat(manifest.get("tensors").has("text")).isFalse();
      assertThat(manifest.get("schema").get("fields").get(1).get("name").asText()).isEqualTo("x");
      JsonNode shard = manifest.get("shards").get(1);
      assertThat(shard.get("rank").asInt()).isEqualTo(1);
      assertThat(shard.get("batches").asInt()).isEqualTo(10);
      assertThat(Path.of(shard.get("file").asText())).isRegularFile();
      assertThat(Path.of(shard.get("lease").asText())).isRegularFile();
      assertThat(Files.getPosixFilePermissions(Path.of(shard.get("file").asText()))).hasSize(2);
    }
  }

  @Test
  void closingFreesTheFiles() {
    List<FeedExport.Shard> shards;
    try (FeedExport export = feed(100).export()) {
      shards = export.shards();
      assertThat(shards).allSatisfy(shard -> assertThat(Path.of(shard.file())).isRegularFile());
      export.close();
    }
    assertThat(shards)
        .hasSize(2)
        .allSatisfy(
            shard -> {
              assertThat(Path.of(shard.file())).doesNotExist();
              assertThat(Path.of(shard.file()).getParent()).doesNotExist();
              assertThat(Path.of(shard.lease())).doesNotExist();
            });
  }

  /** A lock counts only if another process has it; here a JVM that waits for its input. */
  @Test
  void aLockOnTheLeaseKeepsTheFileUntilItsHolderDies() throws Exception {
    FeedExport.Shard kept;
    FeedExport.Shard other;
    Process holder;
    try (FeedExport export = feed(100).export()) {
      kept = export.shards().get(0);
      other = export.shards().get(1);
      holder = LeaseHolder.start(Path.of(kept.lease()));
    }
    try {
      assertThat(Path.of(kept.file())).isRegularFile();
      assertThat(Path.of(other.file())).doesNotExist();
    } finally {
      holder.destroyForcibly();
    }
    assertThat(holder.waitFor(60, TimeUnit.SECONDS)).isTrue();
    Awaitility.await("the file of a dead holder")
        .atMost(Duration.ofSeconds(60))
        .until(() -> !Files.exists(Path.of(kept.file())));
  }

  @Test
  void aTypeWithoutAnArrowFormFailsTheExportAndLeavesNothing() throws IOException {
    var rows = spark.session().range(20).selectExpr("make_interval(0, 1, 0, id) span", "id");
    assertLeavesNothing(
        WeftFeed.shards(rows, 1).batchRows(5), "column span: interval has no Arrow form in a feed");
  }

  /** The folder of rank 1 already exists; rank 0 may have written its file by then. */
  @Test
  void anExportThatFailsOnOneRankLeavesNothing() throws IOException {
    int number = spark.session().sparkContext().newShuffleId() + 2;
    List<Path> taken = new ArrayList<>();
    for (int task = 0; task < 500; task++) {
      Path name = executorFolder().resolve("feed-" + number + "-rank-1-task-" + task);
      taken.add(Files.createDirectory(name));
    }
    try {
      assertLeavesNothing(feed(200), "the batches of rank 1 could not be written to");
    } finally {
      for (Path name : taken) {
        Files.delete(name);
      }
    }
  }

  private static void assertLeavesNothing(WeftFeed feed, String said) throws IOException {
    long used = LocalSpark.statistics().arena().usedBytes();
    List<Path> before = files();
    assertThatThrownBy(feed::export).hasStackTraceContaining(said);
    Awaitility.await("the removal of a failed export's files")
        .atMost(Duration.ofSeconds(60))
        // A file was deleted while the folder was listed.
        .ignoreException(UncheckedIOException.class)
        .untilAsserted(
            () -> {
              assertThat(files()).containsExactlyElementsOf(before);
              assertThat(LocalSpark.statistics().arena().usedBytes()).isLessThanOrEqualTo(used);
              assertThat(LocalSpark.statistics().openReaders()).isZero();
            });
  }

  private static Path executorFolder() {
    return Path.of(WeftExecutor.exchange().address().folder());
  }

  /** Files of exports, and their leases. */
  private static List<Path> files() throws IOException {
    try (Stream<Path> all = Files.walk(executorFolder())) {
      return all.filter(file -> file.toString().contains("feed-")).sorted().toList();
    }
  }

  /** The reader shares no code with the writer of the file. */
  @Test
  void arrowJavaScriptReadsTheSameAndFindsBuffersAligned() throws Exception {
    Path library = NodeScript.arrow();
    try (FeedExport export = feed(200).export()) {
      List<Long> ids = new ArrayList<>();
      for (FeedExport.Shard shard : export.shards()) {
        JsonNode read = NodeScript.run("read-feed.js", library.toString(), shard.file());
        assertThat(read.get("x").asText()).startsWith("FixedSizeList[6]<Float32>");
        assertThat(read.get("extension").asText()).isEqualTo("arrow.fixed_shape_tensor");
        assertThat(read.get("shape").asText()).isEqualTo("{\"shape\":[2,3]}");
        assertThat(read.get("batches").asInt()).isEqualTo(shard.batches());
        assertThat(read.get("misaligned").asInt()).isZero();
        assertThat(read.get("wrong").asInt()).isZero();
        read.get("ids").forEach(id -> ids.add(id.asLong()));
      }
      assertThat(ids).containsExactlyInAnyOrderElementsOf(range(200));
    }
  }
}
