package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.sql.WeftGpu;
import io.weft.testgpus.TestMachine;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Batches in GPU memory for processes that are not executors. */
class GpuFeedExportTest {
  private static LocalSpark spark;

  @TempDir Path folder;

  @BeforeAll
  static void start() {
    spark = DoubleGpus.start(Map.of());
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  /** The rules include: memory must not be freed while another process maps it. */
  @AfterEach
  void noRuleIsBroken() {
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  private static WeftFeed feed(int rows) {
    return WeftFeed.shards(FeedData.rows(spark.session(), rows, 3), 2).batchRows(10);
  }

  private static long memoryTaken() {
    return ExecutorGpu.current().open().memoryTaken();
  }

  private static List<Path> leases(GpuFeedExport export) {
    return export.shards().stream().map(shard -> Path.of(shard.lease())).toList();
  }

  @Test
  void theManifestDescribesTheShards() throws IOException {
    try (GpuFeedExport export = feed(200).exportToGpus()) {
      JsonNode manifest = new ObjectMapper().readTree(export.manifest());
      assertThat(manifest.get("ranks").asInt()).isEqualTo(2);
      assertThat(manifest.get("rows").asLong()).isEqualTo(200);
      assertThat(manifest.get("batchBytes").asLong()).isEqualTo(256 + 256 + 256);
      assertThat(manifest.get("tensors").get("x").toString())
          .isEqualTo("{\"dtype\":\"float32\",\"shape\":[2,3],\"offset\":256}");
      assertThat(manifest.get("tensors").has("text")).isFalse();
      JsonNode shard = manifest.get("shards").get(1);
      assertThat(shard.get("rank").asInt()).isEqualTo(1);
      assertThat(shard.get("batches").asInt()).isEqualTo(10);
      assertThat(shard.get("bytes").asLong()).isEqualTo(10 * export.batchBytes());
      assertThat(shard.get("handle").asText()).hasSize(128);
      assertThat(shard.get("pid").asLong()).isEqualTo(ProcessHandle.current().pid());
      assertThat(leases(export)).allSatisfy(lease -> assertThat(lease).isRegularFile());
    }
  }

  @Test
  void closingFreesTheMemory() {
    List<Path> leases;
    try (GpuFeedExport export = feed(205).lastBatch(LastBatch.KEEP).exportToGpus()) {
      leases = leases(export);
    }
    assertThat(leases).hasSize(2).allSatisfy(lease -> assertThat(lease).doesNotExist());
    assertThat(memoryTaken()).isZero();
  }

  /** Python has only the driver's library, numpy and the manifest. */
  @Test
  void anotherProcessMapsTheBatchesUntilItUnlocks() throws Exception {
    try (GpuFeedExport export = feed(205).lastBatch(LastBatch.KEEP).exportToGpus()) {
      Process reader = start(export);
      try {
        check(reader, 205);
        reader.getOutputStream().close();
        assertThat(reader.waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(reader.exitValue()).isZero();
      } finally {
        reader.destroyForcibly();
      }
    }
    assertThat(memoryTaken()).isZero();
  }

  /** It has the same batches as an export of rows, whether map tasks upload them or find them. */
  @Test
  void rowsThatAreExchangedBetweenGpusAreTheSame() throws Exception {
    Dataset<Row> rows = FeedData.rows(spark.session(), 205, 3);
    UnaryOperator<WeftFeed> settings = feed -> feed.batchRows(10).lastBatch(LastBatch.KEEP);
    List<UnaryOperator<WeftFeed>> feeds =
        List.of(
            feed -> feed,
            feed -> feed.by("group"),
            feed -> feed.by("text"),
            feed -> feed.shuffled(3));
    for (UnaryOperator<WeftFeed> each : feeds) {
      WeftFeed plain = each.apply(settings.apply(WeftFeed.shards(rows, 2)));
      WeftFeed there = each.apply(settings.apply(WeftFeed.shards(WeftGpu.onDevice(rows), 2)));
      JsonNode expected = read(plain);
      assertThat(expected.get("ids")).hasSize(205);
      assertThat(read(plain.onGpus())).isEqualTo(expected);
      assertThat(read(there)).isEqualTo(expected);
    }
    assertThat(memoryTaken()).isZero();
  }

  private JsonNode read(WeftFeed feed) throws Exception {
    try (GpuFeedExport export = feed.exportToGpus()) {
      Process reader = start(export);
      try {
        JsonNode read = new ObjectMapper().readTree(reader.inputReader().readLine());
        assertThat(read.get("wrong").asInt()).isZero();
        return read;
      } finally {
        reader.getOutputStream().close();
        assertThat(reader.waitFor(60, TimeUnit.SECONDS)).isTrue();
      }
    }
  }

  @Test
  void rowsOfAQueryOnTheGpuDoNotComeToTheHost() {
    TestMachine.assumeDoubles(); // They count.
    Dataset<Row> numbers = FeedData.rows(spark.session(), 20_000, 3).drop("text");
    for (WeftFeed feed :
        List.of(
            WeftFeed.shards(WeftGpu.onDevice(numbers), 2),
            WeftFeed.shards(WeftGpu.onDevice(numbers), 2).by("group").shuffled(3),
            WeftFeed.shards(numbers, 2).onGpus())) {
      long unused = DoubleGpus.controls().cudaDoubleBytesToHost();
      try (GpuFeedExport export = feed.exportToGpus()) {
        assertThat(export.shards().stream().mapToLong(GpuFeedExport.Shard::rows).sum())
            .isGreaterThan(15_000);
      }
      assertThat(DoubleGpus.controls().cudaDoubleBytesToHost()).isLessThan(20_000);
    }
  }

  @Test
  void aProcessThatIsKilledKeepsTheMemoryNoLonger() throws Exception {
    Process reader;
    List<Path> leases;
    try (GpuFeedExport export = feed(200).exportToGpus()) {
      leases = leases(export);
      reader = start(export);
      check(reader, 200);
    }
    try {
      assertThat(leases).allSatisfy(lease -> assertThat(lease).isRegularFile());
      assertThat(memoryTaken()).isPositive();
    } finally {
      reader.destroyForcibly();
    }
    assertThat(reader.waitFor(60, TimeUnit.SECONDS)).isTrue();
    Awaitility.await("the end of a dead holder's memory")
        .atMost(Duration.ofSeconds(60))
        .until(() -> memoryTaken() == 0);
    assertThat(leases).allSatisfy(lease -> assertThat(Files.exists(lease)).isFalse());
  }

  /** A lock on a removed lease keeps nothing: the feed was closed before the lock. */
  @Test
  void aLeaseRemovedBeforeItIsLockedKeepsNothing() throws Exception {
    Path lease = Files.createFile(folder.resolve("lease"));
    try (FileChannel open = FileChannel.open(lease, StandardOpenOption.WRITE);
        GpuFeedExport export = feed(200).exportToGpus()) {
      assertThat(open.isOpen()).isTrue();
      // Opens the file, even after its name was removed.
      Path held = descriptor(lease);
      Files.delete(lease);
      Path manifest = folder.resolve("feed.json");
      String own = export.shards().get(0).lease();
      Files.writeString(manifest, export.manifest().replace(own, held.toString()));
      Process reader =
          PythonScript.start("read-gpu-feed.py", DoubleGpus.driver(), manifest.toString());
      assertThat(reader.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(reader.exitValue()).isEqualTo(1);
      assertThat(reader.inputReader().readLine()).as("what it read").isNull();
    }
  }

  /** This process's path for a file that it has open. */
  private static Path descriptor(Path file) throws IOException {
    Path own = Path.of("/proc", String.valueOf(ProcessHandle.current().pid()), "fd");
    try (Stream<Path> all = Files.list(own)) {
      for (Path each : all.toList()) {
        if (Files.exists(each) && Files.isSameFile(each, file)) {
          return each;
        }
      }
    }
    throw new AssertionError(file + " is not open");
  }

  private Process start(GpuFeedExport export) throws Exception {
    Path manifest = folder.resolve("feed.json");
    export.writeManifest(manifest);
    return PythonScript.start("read-gpu-feed.py", DoubleGpus.driver(), manifest.toString());
  }

  private static void check(Process reader, int rows) throws IOException {
    BufferedReader out = reader.inputReader();
    String line = out.readLine();
    assertThat(line).isNotNull();
    JsonNode read = new ObjectMapper().readTree(line);
    assertThat(read.get("wrong").asInt()).isZero();
    List<Long> ids = new ArrayList<>();
    read.get("ids").forEach(id -> ids.add(id.asLong()));
    assertThat(ids).containsExactlyInAnyOrderElementsOf(LongStream.range(0, rows).boxed().toList());
  }
}
