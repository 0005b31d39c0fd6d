package io.weft.spark.feed.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.spark.LocalSpark;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.ipc.ArrowFileReader;
import org.apache.spark.api.java.function.FilterFunction;
import org.apache.spark.sql.AnalysisException;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Exports by {@code df.write} and by SQL, their list by {@code spark.read}, and their ends. */
class WeftSourceTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);

  @TempDir static Path warehouse;
  private static LocalSpark spark;

  @TempDir Path parent;
  private Path folder;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of("spark.sql.warehouse.dir", warehouse.toString()));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @BeforeEach
  void nameFolder() {
    folder = parent.resolve("features");
  }

  private static Dataset<Row> rows(long count) {
    return spark.session().range(0, count, 1, 2).selectExpr("id", "cast(id % 3 as float) x");
  }

  private static DataFrameWriter<Row> writer(Dataset<Row> rows) {
    return rows.write().format("weft").option("ranks", 2).option("batchRows", 10);
  }

  private List<Row> list() {
    return list(folder);
  }

  private static List<Row> list(Path folder) {
    return spark.session().read().format("weft").load(folder.toString()).collectAsList();
  }

  private static List<Path> files(List<Row> shards) {
    return shards.stream().map(shard -> Path.of(shard.<String>getAs("path"))).toList();
  }

  private static List<Long> ids(List<Path> files) throws IOException {
    List<Long> ids = new ArrayList<>();
    for (Path file : files) {
      try (BufferAllocator allocator = new RootAllocator();
          FileChannel channel = FileChannel.open(file);
          ArrowFileReader reader = new ArrowFileReader(channel, allocator)) {
        while (reader.loadNextBatch()) {
          BigIntVector id = (BigIntVector) reader.getVectorSchemaRoot().getVector("id");
          for (int row = 0; row < id.getValueCount(); row++) {
            ids.add(id.get(row));
          }
        }
      }
    }
    return ids;
  }

  private static void awaitFreed(List<Path> files) {
    Awaitility.await("the end of " + files)
        .atMost(LIMIT)
        .until(() -> files.stream().noneMatch(Files::exists));
  }

  private static List<Long> range(long end) {
    return LongStream.range(0, end).boxed().toList();
  }

  @Test
  void aSaveIsListedAndItsFilesHaveEveryRowOnce() throws IOException {
    writer(rows(100)).save(folder.toString());
    List<Row> shards = list();
    assertThat(shards).extracting(shard -> shard.<Integer>getAs("rank")).containsExactly(0, 1);
    for (Row shard : shards) {
      assertThat(shard.<Long>getAs("rows")).isEqualTo(50);
      assertThat(shard.<Integer>getAs("batches")).isEqualTo(5);
      assertThat(shard.<String>getAs("host")).isNotBlank();
      assertThat(shard.<Timestamp>getAs("leaseEnd")).isNull();
      assertThat(shard.<Long>getAs("bytes"))
          .isEqualTo(Files.size(Path.of(shard.<String>getAs("path"))));
    }
    assertThat(ids(files(shards))).containsExactlyInAnyOrderElementsOf(range(100));
  }

  /** Options are case-insensitive, as Spark's are. */
  @Test
  void optionsReachTheFeed() throws IOException {
    spark
        .session()
        .range(95)
        .selectExpr("id", "id % 5 as user")
        .write()
        .format("weft")
        .option("RANKS", 2)
        .option("batchrows", 7)
        .option("lastBatch", "keep")
        .option("by", "user")
        .save(folder.toString());
    List<Path> files = files(list());
    assertThat(files).hasSize(2);
    assertThat(ids(files)).containsExactlyInAnyOrderElementsOf(range(95));
    List<Long> users = new ArrayList<>();
    for (Path file : files) {
      users.addAll(ids(List.of(file)).stream().map(id -> id % 5).distinct().toList());
    }
    assertThat(users).as("users by rank").containsExactlyInAnyOrder(0L, 1L, 2L, 3L, 4L);
    JsonNode manifest = new ObjectMapper().readTree(folder.resolve("manifest.json").toFile());
    assertThat(manifest.get("batchRows").asInt()).isEqualTo(7);
  }

  @Test
  void theManifestDescribesTheFeed() throws IOException {
    Dataset<Row> arrays =
        spark.session().range(40).selectExpr("id", "array(1f, 2f, 3f, cast(id as float)) Pixels");
    writer(arrays)
        .option("shuffleSeed", 17)
        .option("lease", "2h")
        .option("tensor.pixels", " float32 [2, 2]")
        .save(folder.toString());
    JsonNode manifest = new ObjectMapper().readTree(folder.resolve("manifest.json").toFile());
    assertThat(manifest.get("application").asText())
        .isEqualTo(spark.session().sparkContext().applicationId());
    assertThat(manifest.get("shuffleSeed").asLong()).isEqualTo(17);
    assertThat(manifest.get("tensors").get("Pixels").toString())
        .isEqualTo("{\"dtype\":\"float32\",\"shape\":[2,2]}");
    Instant end = Instant.ofEpochMilli(manifest.get("leaseEnd").asLong());
    assertThat(end).isBetween(Instant.now().plusSeconds(7000), Instant.now().plusSeconds(7200));
    assertThat(list())
        .allSatisfy(
            shard -> assertThat(shard.<Timestamp>getAs("leaseEnd").toInstant()).isEqualTo(end));
    String otherDates = "spark.sql.datetime.java8API.enabled";
    spark.session().conf().set(otherDates, "true");
    try {
      assertThat(list())
          .allSatisfy(shard -> assertThat(shard.<Instant>getAs("leaseEnd")).isEqualTo(end));
    } finally {
      spark.session().conf().unset(otherDates);
    }
  }

  @Test
  void sqlSavesAndListsATable() throws IOException {
    rows(60).createOrReplaceTempView("source");
    spark
        .session()
        .sql(
            "CREATE TABLE exported USING weft OPTIONS (ranks 2, batchRows 10, shuffleSeed 3)"
                + " AS SELECT id, array(x) AS x FROM source");
    List<Row> shards = spark.session().sql("SELECT * FROM exported ORDER BY rank").collectAsList();
    assertThat(ids(files(shards))).containsExactlyInAnyOrderElementsOf(range(60));
    assertThat(list(warehouse.resolve("exported"))).isEqualTo(shards);
    spark.session().sql("DROP TABLE exported");
    awaitFreed(files(shards));
  }

  @Test
  void sqlSavesToAPath() throws IOException {
    rows(60).createOrReplaceTempView("source");
    spark
        .session()
        .sql(
            ("CREATE TABLE elsewhere USING weft OPTIONS (ranks 1, batchRows 10,"
                    + " `tensor.x` 'float32[1]') LOCATION '%s' AS SELECT id, array(x) AS x"
                    + " FROM source")
                .formatted(folder));
    assertThat(ids(files(list()))).containsExactlyInAnyOrderElementsOf(range(60));
    spark.session().sql("DROP TABLE elsewhere");
    List<Path> files = files(list());
    assertThat(files).as("an external table's files").allMatch(Files::exists);
  }

  @Test
  void anExistingExportIsAnErrorUnlessItIsOverwritten() throws IOException {
    writer(rows(40)).save(folder.toString());
    List<Path> first = files(list());
    assertThatThrownBy(() -> writer(rows(60)).save(folder.toString()))
        .isInstanceOf(AnalysisException.class)
        .hasMessageStartingWith("[PATH_ALREADY_EXISTS] Path file:" + folder)
        .hasMessageContaining("already exists. Set mode as \"overwrite\"");
    writer(rows(60)).mode(SaveMode.Ignore).save(folder.toString());
    assertThat(files(list())).isEqualTo(first);
    writer(rows(60)).mode(SaveMode.Overwrite).save(folder.toString());
    assertThat(ids(files(list()))).containsExactlyInAnyOrderElementsOf(range(60));
    awaitFreed(first);
    assertThat(files(list())).allMatch(Files::exists);
  }

  @Test
  void anAppendIsRefused() {
    assertThatThrownBy(() -> writer(rows(40)).mode(SaveMode.Append).save(folder.toString()))
        .hasMessageContaining("an export cannot be appended to")
        .hasMessageContaining("overwrite, or to another path");
    assertThat(folder).doesNotExist();
  }

  /** Deletes nothing that is not an export. */
  @Test
  void otherFilesAreNotOverwritten() throws IOException {
    Path other = Files.createDirectory(folder).resolve("part-0.parquet");
    Files.writeString(other, "rows");
    assertThatThrownBy(() -> writer(rows(40)).mode(SaveMode.Overwrite).save(folder.toString()))
        .hasMessageContaining("is no export of format weft, it has the file part-0.parquet");
    assertThat(other).hasContent("rows");
  }

  /** A save that fails keeps the export that it was to replace. */
  @Test
  void aFailedOverwriteKeepsTheEarlierExport() {
    writer(rows(40)).save(folder.toString());
    List<Path> first = files(list());
    Dataset<Row> failing = rows(40).selectExpr("id", "cast(raise_error('no row') as float) x");
    assertThatThrownBy(() -> writer(failing).mode(SaveMode.Overwrite).save(folder.toString()))
        .hasMessageContaining("no row");
    assertThat(files(list())).isEqualTo(first).allMatch(Files::exists);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "ranks      | 0          | option ranks of format weft is \"0\": it has to be a whole"
            + " number, 1 or more",
        "ranks      | two        | option ranks of format weft is \"two\"",
        "batchRows  | -64        | option batchRows of format weft is \"-64\": it has to be a whole"
            + " number, 1 or more",
        "shuffleSeed| x          | it has to be a whole number of 64 bits",
        "lastBatch  | pad        | it has to be drop or keep",
        "lease      | 90         | it has to be a time above 0 with its unit, such as 90min or 8h",
        "lease      | 0s         | it has to be a time above 0",
        "lease      | soon       | it has to be a time above 0",
        "by         | user       | option by of format weft names the column user; the columns are"
            + " id, x",
        "tensor.y   | int8[2]    | names the column y; the columns are id, x",
        "tensor.x   | float32    | it has to be a type and a shape, such as float32[3, 224, 224]",
        "tensor.x   | complex[1] | no data type is called complex",
        "compression| lz4        | format weft has no option compression; its options are ranks,"
            + " batchRows",
      })
  void wrongOptionsAreNamed(String name, String value, String message) {
    assertThatThrownBy(() -> writer(rows(40)).option(name, value).save(folder.toString()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
    assertThat(folder).doesNotExist();
  }

  @Test
  void missingOptionsAreNamed() {
    assertThatThrownBy(() -> rows(40).write().format("weft").save(folder.toString()))
        .hasMessageContaining("format weft needs the option ranks");
    assertThatThrownBy(() -> writer(rows(40)).save())
        .hasMessageContaining("format weft needs the option path");
  }

  @Test
  void partitionByIsRefused() {
    assertThatThrownBy(() -> writer(rows(40)).partitionBy("id").save(folder.toString()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("has no partitionBy")
        .hasMessageContaining("the option by");
  }

  @Test
  void aColumnThatCannotTravelIsNamedBeforeAnyRowMoves() {
    Dataset<Row> spans = rows(40).selectExpr("parse_json('1') odd", "id");
    assertThatThrownBy(() -> writer(spans).save(folder.toString()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("column odd: variant has no Arrow form in a feed; cast it or leave it out");
    assertThat(folder).doesNotExist();
  }

  @Test
  void aPathWithoutAnExportIsAnError() {
    assertThatThrownBy(this::list).hasMessageContaining("features has no export");
  }

  @Test
  void anExportWithoutRowsHasEmptyFiles() throws IOException {
    writer(rows(0)).save(folder.toString());
    assertThat(list()).allSatisfy(shard -> assertThat(shard.<Long>getAs("rows")).isZero());
    assertThat(ids(files(list()))).isEmpty();
  }

  @Test
  void deletingTheFolderFreesTheFiles() throws IOException {
    writer(rows(40)).save(folder.toString());
    List<Path> files = files(list());
    try (Stream<Path> all = Files.list(folder)) {
      for (Path file : all.toList()) {
        Files.delete(file);
      }
    }
    Files.delete(folder);
    awaitFreed(files);
  }

  /** The manifest goes first, so nothing names files that are no longer there. */
  @Test
  void theEndOfTheLeaseFreesTheFilesAndWithdrawsTheManifest() {
    List<Path> files = List.of();
    for (int seconds = 2; files.isEmpty(); seconds *= 2) {
      writer(rows(40)).option("lease", seconds + "s").save(folder.toString());
      files = filesUnlessEnded();
    }
    awaitFreed(files);
    assertThat(folder).doesNotExist();
  }

  /** On a busy machine a lease may end before this. */
  private List<Path> filesUnlessEnded() {
    try {
      return files(list());
    } catch (IllegalArgumentException e) {
      assertThat(e).hasMessageContaining("has no export: its lease");
      return List.of();
    }
  }

  /** Not only by programs that use Hadoop. */
  @ParameterizedTest
  @ValueSource(strings = {"{}", "[", ""})
  void aReplacedManifestFreesTheFilesAndStays(String manifest) throws IOException {
    writer(rows(40)).save(folder.toString());
    List<Path> files = files(list());
    Path replaced = folder.resolve("manifest.json");
    Files.writeString(replaced, manifest);
    awaitFreed(files);
    assertThat(replaced).hasContent(manifest);
  }

  /** Spark caches what a table refers to. */
  @Test
  void aTableListsTheShardsOfNow() {
    rows(60).createOrReplaceTempView("source");
    String table =
        "CREATE TABLE refreshed USING weft OPTIONS (ranks 2) LOCATION '%s' AS SELECT * FROM source";
    spark.session().sql(table.formatted(folder));
    String query = "SELECT * FROM refreshed ORDER BY rank";
    assertThat(spark.session().sql(query).collectAsList()).isEqualTo(list());
    writer(rows(80)).mode(SaveMode.Overwrite).save(folder.toString());
    assertThat(spark.session().sql(query).collectAsList()).isEqualTo(list());
    spark.session().sql("DROP TABLE refreshed");
  }

  /** Another save may end while the rows of this one move. */
  @ParameterizedTest
  @EnumSource(names = {"ErrorIfExists", "Ignore"})
  void anExportThatAppearsDuringASaveIsNotReplaced(SaveMode mode) {
    String manifest = folder.resolve("manifest.json").toString();
    Dataset<Row> slow = rows(40).filter((FilterFunction<Row>) row -> isWritten(manifest));
    DataFrameWriter<Row> writer = writer(slow).mode(mode);
    if (mode == SaveMode.Ignore) {
      writer.save(folder.toString());
    } else {
      assertThatThrownBy(() -> writer.save(folder.toString()))
          .hasMessageStartingWith("[PATH_ALREADY_EXISTS]");
    }
    assertThat(Path.of(manifest)).hasContent("{}");
  }

  private static boolean isWritten(String manifest) throws IOException {
    Files.createDirectories(Path.of(manifest).getParent());
    Files.writeString(Path.of(manifest), "{}");
    return true;
  }

  @Test
  void otherFilesAreIgnoredIfTheModeSaysSo() throws IOException {
    Files.writeString(Files.createDirectory(folder).resolve("other"), "rows");
    writer(rows(40)).mode(SaveMode.Ignore).save(folder.toString());
    assertThat(folder.resolve("manifest.json")).doesNotExist();
  }

  @Test
  void aKeyMayHaveADotInItsName() throws IOException {
    Dataset<Row> named = spark.session().range(50).selectExpr("id", "id % 4 as `a.b`");
    writer(named).option("by", "a.b").option("lastBatch", "keep").save(folder.toString());
    assertThat(ids(files(list()))).containsExactlyInAnyOrderElementsOf(range(50));
  }

  @Test
  void theEndOfTheApplicationWithdrawsTheManifest() {
    writer(rows(40)).save(folder.toString());
    List<Path> files = files(list());
    spark.close();
    assertThat(folder).doesNotExist();
    awaitFreed(files);
    start();
  }
}
