package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.spark.LocalSpark;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The Python package reads, in processes of its own, what the data source saves. */
class PythonPackageTest {
  private static final String SCRIPT = "weft-feed.py";

  private static LocalSpark spark;

  @TempDir Path parent;
  private String folder;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of("spark.sql.session.timeZone", "UTC"));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @BeforeEach
  void nameFolder() {
    folder = parent.resolve("features").toString();
  }

  /** A column of each type; the script knows the values that belong to an id. */
  private static Dataset<Row> allTypes(long rows) {
    return spark
        .session()
        .range(0, rows, 1, 2)
        .selectExpr(
            "id",
            "id % 2 = 0 flag",
            "cast(id % 100 as byte) i8",
            "cast(id as short) i16",
            "cast(-id as int) i32",
            "cast(id / 2 as float) f32",
            "id / 4 f64",
            "make_ym_interval(0, cast(id as int)) months",
            "if(id % 3 = 0, null, id) maybe",
            "cast(id as decimal(9, 2)) small",
            "cast(concat('-', id, '000000000000000000.25') as decimal(30, 2)) large",
            "date_from_unix_date(cast(id as int)) day",
            "timestamp_micros(id) moment",
            "timestamp_ntz'2026-11-23 01:02:03.000004' plain",
            "if(id % 3 = 0, null, concat('row ', id, ' \u00e4')) text",
            "cast(concat('b', id) as binary) raw",
            "array(concat('t', id), null) texts",
            "transform(sequence(0, 5), i -> cast(id + i as float)) x",
            "array(15360S, cast((id % 2) * 15360 as short)) half",
            "array(16256S, 16384S) brain",
            "cast('abcd' as binary) four",
            "transform(sequence(1, 2 * (1 + id % 3)), i -> cast(i as short)) ragged",
            "if(id % 3 = 0, null, sequence(0, id % 4)) list",
            "map('a', id, 'b', id + 1) entries",
            "named_struct('n', if(id = 3, null, id), 's', concat('s', id)) record",
            "null nothing");
  }

  private static DataFrameWriter<Row> writerOfTypes(long rows, int batchRows) {
    return allTypes(rows)
        .write()
        .format("weft")
        .option("ranks", 2)
        .option("batchRows", batchRows)
        .option("lastBatch", "keep")
        .option("tensor.x", "float32[2, 3]")
        .option("tensor.half", "float16[2]")
        .option("tensor.brain", "bfloat16[2]")
        .option("tensor.four", "int8[4]")
        .option("tensor.ragged", "int16[-1, 2]");
  }

  private static DataFrameWriter<Row> writer(long rows) {
    return FeedData.rows(spark.session(), rows, 3)
        .write()
        .format("weft")
        .option("ranks", 2)
        .option("batchRows", 10);
  }

  private List<Path> files() {
    return spark.session().read().format("weft").load(folder).collectAsList().stream()
        .map(shard -> Path.of(shard.<String>getAs("path")))
        .toList();
  }

  private static String[] command(String task, Object... arguments) {
    List<String> all = new ArrayList<>(List.of(PythonScript.PACKAGE, task));
    List.of(arguments).forEach(argument -> all.add(argument.toString()));
    return all.toArray(String[]::new);
  }

  private static JsonNode python(String task, Object... arguments) throws Exception {
    return PythonScript.run(SCRIPT, command(task, arguments));
  }

  private static List<Long> longs(JsonNode numbers) {
    List<Long> found = new ArrayList<>();
    numbers.forEach(number -> found.add(number.asLong()));
    return found;
  }

  private static List<Long> range(long end) {
    return LongStream.range(0, end).boxed().toList();
  }

  private static PythonTalk talk(String task, Object... arguments) throws Exception {
    return PythonTalk.start(SCRIPT, command(task, arguments));
  }

  @Test
  void everyTypeIsReadInPlace() throws Exception {
    writerOfTypes(205, 10).option("shuffleSeed", 17).save(folder);
    JsonNode read = python("types", folder, 2);
    assertThat(read.get("wrong")).isEmpty();
    assertThat(read.get("copied")).as("arrays outside of the mapping").isEmpty();
    assertThat(read.get("misaligned")).isEmpty();
    assertThat(read.get("writable")).isEmpty();
    assertThat(longs(read.get("ids"))).containsExactlyInAnyOrderElementsOf(range(205));
  }

  /** 21 rows in batches of 10: rank 1 has an empty one, and 0 rows leave no batch. */
  @Test
  void emptyBatchesHaveEmptyColumns() throws Exception {
    writerOfTypes(21, 10).save(folder);
    JsonNode read = python("types", folder, 2);
    assertThat(read.get("wrong")).isEmpty();
    assertThat(read.get("batches").asInt()).isEqualTo(4);
    assertThat(longs(read.get("ids"))).containsExactlyInAnyOrderElementsOf(range(21));
    writerOfTypes(0, 10).mode(SaveMode.Overwrite).save(folder);
    assertThat(python("types", folder, 2).get("ids")).isEmpty();
  }

  /** Each epoch has the order that a rank inside Spark has for the same seed. */
  @Test
  void epochsHaveTheOrderOfRanksInsideSpark() throws Exception {
    writer(605).option("shuffleSeed", -17).option("lastBatch", "keep").save(folder);
    List<ArrayList<ArrayList<List<Long>>>> inside =
        WeftFeed.shards(FeedData.rows(spark.session(), 605, 3), 2)
            .batchRows(10)
            .shuffled(-17)
            .lastBatch(LastBatch.KEEP)
            .train(
                task -> {
                  ArrayList<ArrayList<List<Long>>> epochs = new ArrayList<>();
                  for (int epoch = 0; epoch < 4; epoch++) {
                    epochs.add(FeedData.epoch(task, epoch));
                  }
                  return epochs;
                });
    for (int rank = 0; rank < 2; rank++) {
      JsonNode outside = python("epochs", folder, rank, 4);
      assertThat(outside).hasToString(new ObjectMapper().writeValueAsString(inside.get(rank)));
      assertThat(outside.get(1)).isNotEqualTo(outside.get(0));
    }
  }

  @Test
  void withoutASeedEveryEpochIsTheSame() throws Exception {
    writer(100).save(folder);
    JsonNode epochs = python("epochs", folder, 0, 2);
    assertThat(epochs.get(1)).isEqualTo(epochs.get(0));
    assertThat(epochs.get(0)).hasSize(5);
  }

  @Test
  void aReaderWaitsForTheWriter() throws Exception {
    try (PythonTalk reader = talk("hold", folder, 0)) {
      assertThat(reader.process().waitFor(500, TimeUnit.MILLISECONDS)).isFalse();
      writer(100).save(folder);
      assertThat(reader.line()).isEqualTo("open");
      reader.goOn();
      assertThat(reader.result().get("ids")).hasSize(50);
    }
  }

  /** What a reader has open stays, also if its export is replaced. */
  @Test
  void anOpenFeedSurvivesItsOverwrite() throws Exception {
    writer(100).save(folder);
    List<Path> first = files();
    try (PythonTalk reader = talk("hold", folder, 0)) {
      assertThat(reader.line()).isEqualTo("open");
      writer(200).mode(SaveMode.Overwrite).save(folder);
      Awaitility.await("the file of the other rank")
          .atMost(Duration.ofSeconds(60))
          .until(() -> !Files.exists(first.get(1)));
      assertThat(first.get(0)).exists();
      reader.goOn();
      JsonNode read = reader.result();
      assertThat(read.get("ids")).hasSize(50);
      assertThat(read.get("kept")).hasSize(10);
    }
    awaitFreed(first);
    assertThat(files()).allMatch(Files::exists);
  }

  @Test
  void aKilledReaderLosesItsLease() throws Exception {
    writer(100).save(folder);
    List<Path> files = files();
    try (PythonTalk reader = talk("hold", folder, 1)) {
      assertThat(reader.line()).isEqualTo("open");
      Files.delete(Path.of(folder, "manifest.json"));
      awaitFreed(files.subList(0, 1));
      assertThat(files.get(1)).exists();
      reader.kill();
      awaitFreed(files);
    }
  }

  /** The orderly end removes the file's name, but not what a reader has open. */
  @Test
  void anOpenFeedSurvivesTheEndOfItsApplication() throws Exception {
    writer(100).save(folder);
    List<Path> files = files();
    try (PythonTalk reader = talk("hold", folder, 0)) {
      assertThat(reader.line()).isEqualTo("open");
      spark.close();
      awaitFreed(files);
      reader.goOn();
      assertThat(reader.result().get("ids")).hasSize(50);
    } finally {
      start();
    }
  }

  /** Workers of a reader need neither the manifest nor the file's name. */
  @Test
  void otherProcessesGetTheOpenFile() throws Exception {
    writer(100).save(folder);
    JsonNode read = python("passed", folder);
    List<Long> here = longs(read.get("here"));
    assertThat(here).hasSize(50);
    for (String method : List.of("fork", "spawn", "forkserver")) {
      assertThat(longs(read.get(method))).as(method).isEqualTo(here);
    }
  }

  @Test
  void theGarbageCollectorMayEndAFeedAtAnyTime() throws Exception {
    writer(100).save(folder);
    assertThat(python("collected", folder).get("left").asInt()).isZero();
  }

  @Test
  void filesOfOtherUsersAreRefused() throws Exception {
    writer(100).save(folder);
    JsonNode errors = python("untrusted", folder);
    assertThat(errors.get("own").asText()).isEqualTo("read");
    assertThat(errors.get("foreign").asText()).contains("manifest.json belongs to user");
    assertThat(errors.get("pipe").asText()).contains("manifest.json is no regular file");
    assertThat(errors.get("link").asText()).contains("cannot be opened");
    assertThat(errors.get("file").asText()).isEqualTo("/dev/null is no regular file");
    assertThat(errors.get("lease").asText()).isEqualTo("/dev/null is no regular file");
  }

  /** The kernel would drop the lock with the first descriptor that is closed. */
  @Test
  void theLastFeedOfAProcessGivesTheLeaseBack() throws Exception {
    writer(100).save(folder);
    List<Path> files = files();
    try (PythonTalk reader = talk("hold_by_two", folder, 0)) {
      assertThat(reader.line()).isEqualTo("open");
      writer(100).mode(SaveMode.Overwrite).save(folder);
      awaitFreed(files.subList(1, 2));
      assertThat(files.get(0)).exists();
      reader.goOn();
      assertThat(reader.line()).isEqualTo("closed");
      awaitFreed(files);
      reader.goOn();
      assertThat(reader.result().get("error").asText()).contains("is closed");
    }
  }

  private static void awaitFreed(List<Path> files) {
    Awaitility.await("the end of " + files)
        .atMost(Duration.ofSeconds(60))
        .until(() -> files.stream().noneMatch(Files::exists));
  }

  @Test
  void errorsSayWhatIsMissing() throws Exception {
    JsonNode none = python("lost", folder, 0, 0.3);
    assertThat(none.get("error").asText()).isEqualTo("FeedTimeout");
    assertThat(none.get("message").asText())
        .contains("within 0.3 s", "features/manifest.json does not exist");
    assertThat(none.get("seconds").asDouble()).isBetween(0.3, 30.0);
    writer(100).save(folder);
    assertThat(python("lost", folder, 2, 60).get("message").asText())
        .contains("has the ranks 0 to 1, not 2");
    assertThat(python("lost", "file:" + folder, 1, 60).get("error").asText()).isEqualTo("none");
    assertThat(longs(python("local", folder, 10).get("ranks"))).containsExactly(0L, 1L);
    Path manifest = Path.of(folder, "manifest.json");
    String stale = Files.readString(manifest);
    List<Path> files = files();
    Files.delete(manifest);
    awaitFreed(files);
    Files.writeString(manifest, stale);
    Path foreign = parent.resolve("foreign.json");
    Files.writeString(foreign, stale.replace("\"format\" : 1", "\"format\" : 2"));
    assertThat(python("lost", foreign, 0, 60).get("message").asText())
        .contains("has the format 2, this package reads 1: install the package of the Weft");
    Files.writeString(foreign, "{}");
    assertThat(python("lost", foreign, 0, 60).get("message").asText())
        .contains("is not the manifest of a feed");
    assertThat(python("lost", folder, 0, 0).get("message").asText())
        .contains("the file of rank 0 is on host", "or was freed because its lease", "is gone");
    // The next save may have other ranks.
    assertThat(python("lost", folder, 7, 0).get("message").asText())
        .contains("no feed at", "has the ranks 0 to 1, not 7");
    assertThat(python("local", folder, 0).get("message").asText())
        .contains("the file of rank 0 is on host", "no other rank's is here");
  }

  @Test
  void aDamagedFileIsAnError() throws Exception {
    writerOfTypes(25, 10).save(folder);
    JsonNode result = python("damaged", folder + "/manifest.json");
    assertThat(longs(result.get("truncated"))).containsExactly(0L, 100L);
    // A byte of the footer may be a name's or padding.
    assertThat(result.get("overwritten").get(1).asInt()).isGreaterThan(50);
  }

  @Test
  void batchesAreTensorsOfPyTorch() throws Exception {
    assumeTrue(PythonScript.has("torch"), "no python3 with numpy and torch");
    writerOfTypes(200, 10).option("shuffleSeed", 5).save(folder);
    JsonNode inOrder = python("epochs", folder, 1, 2);
    JsonNode result = PythonScript.runWith("torch", SCRIPT, command("torch", folder, 1));
    assertThat(result.get("wrong")).isEmpty();
    assertThat(result.get("copied")).isEmpty();
    assertThat(result.get("private").asBoolean()).isTrue();
    assertThat(result.get("maybe").asText())
        .isEqualTo("column maybe has nulls: replace them in Spark, as by coalesce");
    assertThat(result.get("text").asText()).contains("column text is no number");
    assertThat(result.get("small").asText())
        .isEqualTo("column small is a decimal(9,2): cast it in Spark, as to double");
    assertThat(result.get("months").asText())
        .isEqualTo("column months is an interval: cast it in Spark, as to int");
    assertThat(result.get("epochs")).isEqualTo(inOrder);
    assertThat(result.get("length").asInt()).isEqualTo(10);
    for (String workers : List.of("fork False", "fork True", "spawn False", "spawn True")) {
      JsonNode epochs = result.get(workers);
      assertThat(epochs.get(0)).as(workers).isEqualTo(inOrder.get(1));
      assertThat(epochs.get(1)).as(workers).isEqualTo(inOrder.get(0));
    }
  }

  /** Unscaled decimals and months would be wrong numbers. */
  @Test
  void onlyNumbersBecomeTensorsByDefault() throws Exception {
    assumeTrue(PythonScript.has("torch"), "no python3 with numpy and torch");
    writerOfTypes(100, 10).save(folder);
    assertThat(defaults().get("error").asText()).startsWith("column maybe has nulls");
    allTypes(100)
        .drop("maybe")
        .write()
        .format("weft")
        .mode(SaveMode.Overwrite)
        .option("ranks", 1)
        .option("tensor.x", "float32[2, 3]")
        .option("lastBatch", "keep")
        .save(folder);
    assertThat(defaults().get("columns"))
        .extracting(JsonNode::asText)
        .containsExactly("f32", "f64", "flag", "i16", "i32", "i8", "id", "x");
  }

  private JsonNode defaults() throws Exception {
    return PythonScript.runWith("torch", SCRIPT, command("defaults", folder));
  }

  @Test
  void aNullOfALaterBatchIsFoundAtOnce() throws Exception {
    spark
        .session()
        .range(0, 100, 1, 1)
        .selectExpr("id", "if(id = 99, null, id) late")
        .write()
        .format("weft")
        .option("ranks", 1)
        .option("batchRows", 10)
        .save(folder);
    assertThat(python("nulls", folder).get("error").asText()).startsWith("column late has nulls");
  }

  @Test
  void batchesAreRecordBatchesOfPyarrow() throws Exception {
    assumeTrue(PythonScript.has("pyarrow"), "no python3 with numpy and pyarrow");
    writerOfTypes(200, 10).save(folder);
    JsonNode result = PythonScript.runWith("pyarrow", SCRIPT, command("arrow", folder, 1));
    assertThat(result.get("wrong").asInt()).isZero();
  }
}
