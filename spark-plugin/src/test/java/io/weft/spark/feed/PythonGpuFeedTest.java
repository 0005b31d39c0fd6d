package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.sql.WeftGpu;
import io.weft.testgpus.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The data source saves to GPUs, and the Python package reads there in processes of its own. */
class PythonGpuFeedTest {
  private static final String SCRIPT = "weft-gpu-feed.py";
  private static final Duration LIMIT = Duration.ofSeconds(60);

  private static LocalSpark spark;

  @TempDir Path parent;
  private String folder;

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

  @BeforeEach
  void nameFolder() {
    folder = parent.resolve("features").toString();
  }

  /** The rules include: memory must not be freed while another process maps it. */
  @AfterEach
  void everythingIsFreed() throws Exception {
    Files.deleteIfExists(Path.of(folder, "manifest.json"));
    Awaitility.await("the end of the exports' memory").atMost(LIMIT).until(() -> memory() == 0);
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  private static long memory() {
    return ExecutorGpu.current().open().memoryTaken();
  }

  private static DataFrameWriter<Row> writer(Dataset<Row> rows) {
    return rows.write()
        .format("weft")
        .option("ranks", 2)
        .option("batchRows", 10)
        .option("toGpus", "true");
  }

  private static DataFrameWriter<Row> writer(long rows) {
    return writer(FeedData.rows(spark.session(), rows, 3));
  }

  /** A column of each type; the script knows the values that belong to an id. */
  private static DataFrameWriter<Row> writerOfTypes(long rows) {
    Dataset<Row> types =
        spark
            .session()
            .range(0, rows, 1, 2)
            .selectExpr(
                "id",
                "cast(id % 100 as byte) i8",
                "cast(id as short) i16",
                "cast(-id as int) i32",
                "cast(id / 2 as float) f32",
                "id / 4 f64",
                "transform(sequence(0, 5), i -> cast(id + i as float)) x",
                "array(15360S, cast((id % 2) * 15360 as short)) half",
                "array(16256S, 16384S) brain",
                "concat('row ', id) text");
    return writer(types)
        .option("tensor.x", "float32[2, 3]")
        .option("tensor.half", "float16[2]")
        .option("tensor.brain", "bfloat16[2]");
  }

  private List<Row> shards() {
    return spark.session().read().format("weft").load(folder).collectAsList();
  }

  private List<Path> leases() {
    return shards().stream().map(shard -> Path.of(shard.<String>getAs("path"))).toList();
  }

  private static void awaitFreed(List<Path> leases) {
    Awaitility.await("the end of " + leases)
        .atMost(LIMIT)
        .until(() -> leases.stream().noneMatch(Files::exists));
  }

  private static String[] command(String task, Object... arguments) {
    List<String> all = new ArrayList<>(List.of(PythonScript.PACKAGE, DoubleGpus.driver(), task));
    List.of(arguments).forEach(argument -> all.add(argument.toString()));
    return all.toArray(String[]::new);
  }

  private static JsonNode python(String task, Object... arguments) throws Exception {
    return PythonScript.run(SCRIPT, command(task, arguments));
  }

  private static PythonTalk talk(String task, Object... arguments) throws Exception {
    return PythonTalk.start(SCRIPT, command(task, arguments));
  }

  private static List<Long> longs(JsonNode numbers) {
    List<Long> found = new ArrayList<>();
    numbers.forEach(number -> found.add(number.asLong()));
    return found;
  }

  private static List<Long> range(long end) {
    return LongStream.range(0, end).boxed().toList();
  }

  /** With 21 rows, rank 1 has an empty batch. */
  @Test
  void everyRowIsReadOnceInPlace() throws Exception {
    for (long rows : List.of(205L, 21L, 0L)) {
      writer(rows).option("lastBatch", "keep").mode(SaveMode.Overwrite).save(folder);
      JsonNode read = python("read", folder, 2);
      assertThat(read.get("wrong").asInt()).isZero();
      assertThat(longs(read.get("ids"))).containsExactlyInAnyOrderElementsOf(range(rows));
      assertThat(longs(read.get("ranks"))).containsExactly(0L, 1L);
      assertThat(read.get("noted").asText()).isEmpty();
    }
  }

  @Test
  void rowsOfAQueryOnTheGpuAreTheSame() throws Exception {
    writer(WeftGpu.onDevice(FeedData.rows(spark.session(), 205, 3)))
        .option("by", "group")
        .option("lastBatch", "keep")
        .save(folder);
    JsonNode read = python("read", folder, 2);
    assertThat(read.get("wrong").asInt()).isZero();
    assertThat(longs(read.get("ids"))).containsExactlyInAnyOrderElementsOf(range(205));
  }

  @Test
  void aSaveIsListed() throws Exception {
    writer(100).option("lease", "2h").option("shuffleSeed", 17).save(folder);
    List<Row> shards = shards();
    assertThat(shards).extracting(shard -> shard.<Integer>getAs("rank")).containsExactly(0, 1);
    for (Row shard : shards) {
      assertThat(shard.<Long>getAs("rows")).isEqualTo(50);
      assertThat(shard.<Integer>getAs("batches")).isEqualTo(5);
      assertThat(shard.<Long>getAs("bytes")).isEqualTo(5 * 3 * 256);
      assertThat(shard.<Object>getAs("leaseEnd")).isNotNull();
    }
    assertThat(leases()).allMatch(Files::isRegularFile);
    JsonNode manifest = new ObjectMapper().readTree(Path.of(folder, "manifest.json").toFile());
    assertThat(manifest.get("shuffleSeed").asLong()).isEqualTo(17);
  }

  /** Each epoch has the order that a rank inside Spark has for the same seed. */
  @Test
  void epochsHaveTheOrderOfRanksInsideSpark() throws Exception {
    writer(305).option("shuffleSeed", -17).option("lastBatch", "keep").save(folder);
    List<ArrayList<ArrayList<List<Long>>>> inside =
        WeftFeed.shards(FeedData.rows(spark.session(), 305, 3), 2)
            .batchRows(10)
            .shuffled(-17)
            .lastBatch(LastBatch.KEEP)
            .train(
                task -> {
                  ArrayList<ArrayList<List<Long>>> epochs = new ArrayList<>();
                  for (int epoch = 0; epoch < 3; epoch++) {
                    epochs.add(FeedData.epoch(task, epoch));
                  }
                  return epochs;
                });
    for (int rank = 0; rank < 2; rank++) {
      JsonNode outside = python("epochs", folder, rank, 3);
      assertThat(outside).hasToString(new ObjectMapper().writeValueAsString(inside.get(rank)));
      assertThat(outside.get(1)).isNotEqualTo(outside.get(0));
    }
  }

  /** The last array of the last feed keeps the memory of an export that was replaced. */
  @Test
  void openFeedsKeepTheirMemory() throws Exception {
    writer(100).save(folder);
    List<Path> first = leases();
    try (PythonTalk reader = talk("hold", folder, 0)) {
      assertThat(reader.line()).isEqualTo("open");
      writer(200).mode(SaveMode.Overwrite).save(folder);
      awaitFreed(first.subList(1, 2));
      assertThat(first.get(0)).exists();
      reader.goOn();
      assertThat(reader.line()).isEqualTo("closed");
      assertThat(first.get(0)).exists();
      reader.goOn();
      JsonNode read = reader.result();
      assertThat(read.get("wrong").asInt()).isZero();
      assertThat(read.get("ids")).hasSize(50);
      assertThat(longs(read.get("kept"))).isEqualTo(longs(read.get("ids")).subList(0, 10));
      assertThat(read.get("noted").asText()).isEmpty();
      awaitFreed(first);
      reader.goOn();
      assertThat(reader.result().get("error").asText()).contains("is closed");
    }
  }

  @Test
  void aKilledReaderLosesItsLease() throws Exception {
    writer(100).save(folder);
    List<Path> leases = leases();
    try (PythonTalk reader = talk("hold", folder, 1)) {
      assertThat(reader.line()).isEqualTo("open");
      Files.delete(Path.of(folder, "manifest.json"));
      awaitFreed(leases.subList(0, 1));
      assertThat(leases.get(1)).exists();
      assertThat(memory()).isPositive();
      reader.kill();
      awaitFreed(leases);
    }
  }

  @Test
  void anInterpreterEndsWithAnOpenFeed() throws Exception {
    writer(100).save(folder);
    PythonTalk reader = talk("left_open", folder);
    assertThat(Scripts.output(reader.process())).contains("{\"noted\": \"\"}");
  }

  /** As in a kernel that waits for another rank, which has died. */
  @Test
  void workThatNeverEndsStopsNoThread() throws Exception {
    assumeTrue(!TestMachine.isReal(), "only the doubles do this");
    writer(100).save(folder);
    JsonNode read = python("stuck", folder);
    assertThat(read.get("rows").asInt()).isEqualTo(10);
    assertThat(read.get("givenBack").asBoolean()).isFalse();
  }

  /** Work that failed may still have the memory, so the lease ends with the process. */
  @Test
  void workThatFailsKeepsTheLease() throws Exception {
    writer(100).save(folder);
    List<Path> leases = leases();
    try (PythonTalk reader = talk("failing_hold", folder)) {
      JsonNode read = reader.result();
      assertThat(read.get("maps").asInt()).isEqualTo(1);
      Files.delete(Path.of(folder, "manifest.json"));
      awaitFreed(leases.subList(1, 2));
      assertThat(leases.get(0)).exists();
      reader.goOn();
      reader.result();
      awaitFreed(leases);
    }
  }

  @Test
  void aForkedProcessCanNeitherUseNorEndAFeed() throws Exception {
    writer(100).save(folder);
    JsonNode read = python("forked", folder);
    String opened = "the feed was opened before this process was forked";
    assertThat(read.get("batch").asText()).contains(opened);
    assertThat(read.get("array").asText()).contains(opened);
    assertThat(read.get("tensor").asText()).contains(opened);
    assertThat(read.get("open").asText()).contains("was forked from one that uses CUDA");
    assertThat(read.get("ids")).hasSize(10);
    assertThat(read.get("noted").asText()).isEmpty();
  }

  @Test
  void errorsSayWhatIsWrong() throws Exception {
    writer(100).save(folder);
    JsonNode errors = python("errors", folder);
    for (String column : List.of("column", "tensor")) {
      assertThat(errors.get(column).asText())
          .contains("text; the columns on the GPU are id, x, group");
    }
    assertThat(errors.get("position").asText()).isEqualTo("IndexError: batch 5 of 5");
    assertThat(errors.get("pickled").asText()).contains("is for one process");
    assertThat(errors.get("closed").asText()).contains("is closed");
    assertThat(errors.get("rank").asText()).contains("has the ranks 0 to 1, not 7");
    assertThat(errors.get("file").asText()).contains("is in GPU memory: use weft.GpuFeed");
    assertThat(errors.get("driver").asText())
        .contains("the CUDA driver cannot be loaded: libnone.so.1");
    if (!TestMachine.isReal()) {
      assertThat(errors.get("hidden").asText())
          .contains("CUDA_ERROR_NO_DEVICE; this host has no GPU, or CUDA_VISIBLE_DEVICES hides");
    }
    FeedData.rows(spark.session(), 100, 3)
        .write()
        .format("weft")
        .option("ranks", 1)
        .mode(SaveMode.Overwrite)
        .save(folder);
    assertThat(python("lost", folder, 30).get("error").asText())
        .contains("is in files: use weft.Feed");
  }

  @Test
  void whatIsFreedIsNotThere() throws Exception {
    assertThat(python("lost", folder, 0.1).get("error").asText())
        .startsWith("FeedTimeout: no feed at")
        .contains("manifest.json does not exist");
    writer(100).save(folder);
    Path manifest = Path.of(folder, "manifest.json");
    String stale = Files.readString(manifest);
    List<Path> leases = leases();
    Files.delete(manifest);
    awaitFreed(leases);
    Files.writeString(manifest, stale);
    assertThat(python("lost", folder, 0).get("error").asText())
        .startsWith("FeedTimeout")
        .contains("the GPU memory of rank 0 is on host", "or was freed because its lease");
  }

  @Test
  void aDamagedManifestIsAnError() throws Exception {
    writer(100).save(folder);
    JsonNode errors = python("damaged", folder + "/manifest.json");
    assertThat(errors.get("none").asText()).isEqualTo("none");
    for (String change :
        List.of("rows", "batches", "bytes", "offset", "negative", "odd", "column", "shape")) {
      assertThat(errors.get(change).asText())
          .as(change)
          .startsWith("FeedError")
          .endsWith("is damaged: a batch is outside of its memory");
    }
    assertThat(errors.get("dtype").asText()).contains("is damaged: KeyError('complex64')");
    assertThat(errors.get("handle").asText()).contains("is not the manifest of a feed");
    assertThat(errors.get("gpu").asText())
        .contains("the feed is on GPU-00000000-0000", "and this process sees GPU-")
        .contains("CUDA_VISIBLE_DEVICES has to include it");
    assertThat(errors.get("killed").asText())
        .startsWith("FeedTimeout")
        .endsWith("its executor does not run");
    assertThat(errors.get("dead").asText()).startsWith("FeedTimeout");
  }

  @Test
  void wrongOptionsAreNamed() {
    assertThatThrownBy(() -> writer(10).option("toGpus", "maybe").save(folder))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("option toGpus of format weft is \"maybe\": it has to be true or false");
    assertThatThrownBy(() -> writer(10).option("tensor.x", "float32[-1, 3]").save(folder))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "option toGpus of format weft takes only tensors of fixed shape, and the first"
                + " dimension of x varies: save it to files");
    Dataset<Row> texts = spark.session().range(10).selectExpr("concat('row ', id) text");
    assertThatThrownBy(() -> writer(texts).save(folder))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no column of the feed is a number, or a tensor of fixed shape");
    Dataset<Row> nulls = spark.session().range(40).selectExpr("id", "if(id = 7, null, id) late");
    assertThatThrownBy(() -> writer(nulls).save(folder))
        .hasStackTraceContaining("column late, row ")
        .hasStackTraceContaining("null is not a value of tensor");
    assertThat(Path.of(folder)).doesNotExist();
  }

  /** On doubles, a stand-in of PyTorch checks what it is given. */
  @Test
  void batchesAreTensorsOfPyTorch() throws Exception {
    assumeTorchOnGpu();
    writerOfTypes(200).option("shuffleSeed", 5).save(folder);
    List<Long> ids = new ArrayList<>();
    long sum = 0;
    for (int rank = 0; rank < 2; rank++) {
      JsonNode found = torch("tensors", folder, rank);
      assertThat(found.get("wrong")).isEmpty();
      assertThat(found.get("copied")).isEmpty();
      assertThat(found.get("kept")).hasSize(10);
      JsonNode epochs = found.get("epochs");
      assertThat(epochs.get(0)).hasSize(10);
      assertThat(epochs.get(1)).isNotEqualTo(epochs.get(0));
      if (TestMachine.isReal()) {
        assertThat(found.get("workers").asText()).contains("num_workers=0");
      }
      sum += found.get("sum").asLong();
      ids.addAll(longs(found.get("ids")));
    }
    assertThat(ids).containsExactlyInAnyOrderElementsOf(range(200));
    assertThat(sum).isEqualTo(199 * 100);
  }

  @Test
  void pyTorchTrainsOnTheGpu() throws Exception {
    assumeTrue(TestMachine.isReal(), "needs a real GPU");
    assumeTorchOnGpu();
    writerOfTypes(200).option("shuffleSeed", 5).save(folder);
    JsonNode trained = torch("train", folder, 0);
    assertThat(trained.get("device").asText()).startsWith("cuda:");
    JsonNode losses = trained.get("losses");
    assertThat(losses).hasSize(30).allMatch(loss -> Double.isFinite(loss.asDouble()));
  }

  private static void assumeTorchOnGpu() throws Exception {
    assumeTrue(
        !TestMachine.isReal() || PythonScript.has("torch"), "no python3 with numpy and torch");
  }

  private static JsonNode torch(String task, Object... arguments) throws Exception {
    if (!TestMachine.isReal()) {
      return python(task, arguments);
    }
    JsonNode found = PythonScript.runWith("torch", SCRIPT, command(task, arguments));
    assumeTrue(!found.has("unavailable"), found.path("unavailable").asText());
    return found;
  }
}
