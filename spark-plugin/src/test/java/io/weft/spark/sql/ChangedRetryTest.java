package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.weft.spark.LocalSpark;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.IntFunction;
import java.util.stream.Stream;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkEnv;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A map task of the columns route that is run again and makes another row: the driver notices it by
 * the checksum of rows. Spark 4.2 compares them by default.
 */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class ChangedRetryTest {
  private static final int ROWS = 64;
  private static final int RETRIES = 100;
  private static final Runnable NOTHING = () -> {};

  /** Values of the columns, and other values of the same size in a file. */
  private static final List<String[]> COLUMNS =
      List.of(
          new String[] {"s", "lpad(id, 8, 'x')", "lpad(id, 8, 'y')"},
          new String[] {"n", "id * 7", "id * 7 + 1"},
          new String[] {"f", "id / 3", "id / 3 + 1e-9"},
          new String[] {"m", "CAST(id AS decimal(20,2))", "CAST(id AS decimal(20,2)) + 0.01"},
          new String[] {
            "a", "array(id / 2, double(id))", "array(id / 2, double(id) + 1)",
          });

  @TempDir static Path folder;

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    assumeFalse(version.startsWith("4.0."), "Spark 4.0 has no row checksums");
    Map<String, String> settings = new HashMap<>();
    settings.put("spark.sql.adaptive.enabled", "false");
    settings.put("spark.weft.route", "auto");
    settings.put("spark.weft.fallback.failures", "1");
    // A map task for each file.
    settings.put("spark.sql.files.openCostInBytes", "1g");
    settings.put("spark.sql.files.maxPartitionBytes", "1g");
    if (version.startsWith("4.1.")) {
      settings.put("spark.sql.shuffle.orderIndependentChecksum.enabled", "true");
      settings.put("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "true");
    }
    spark = LocalSpark.start(settings);
  }

  @AfterAll
  static void stop() {
    if (spark != null) {
      spark.close();
    }
  }

  /** Map tasks that all run again after one job, each over a file with another row changed. */
  @Test
  void everyChangedRowIsNoticed() throws IOException {
    List<Path> files = write("table", "id", map -> "false", RETRIES);
    List<Path> others = write("other", "id", map -> "id = " + map * 7 % ROWS, RETRIES);
    assertThat(noticed(files, others, NOTHING)).hasSize(RETRIES);
  }

  /** The second order is of a shuffle that delivers blocks in another order. */
  @ParameterizedTest
  @CsvSource({"id", "-id", "id % 10"})
  void equalRowsInAnyOrderAreNoMismatch(String order) throws IOException {
    List<Path> files = write("table", "id", map -> "false", 1);
    List<Path> others = write("other", order, map -> "false", 1);
    assertThat(noticed(files, others, NOTHING)).isEmpty();
  }

  /**
   * The route belongs to the shuffle: even if new shuffles take another, a repeated map task
   * computes the same kind of checksum as its first attempt.
   */
  @ParameterizedTest
  @CsvSource({"spark.weft.route,rows,auto", "spark.weft.enabled,false,true"})
  void aRetryKeepsTheRouteOfItsShuffle(String setting, String away, String back)
      throws IOException {
    try {
      assertOnlyTheOtherRowIsNoticed(() -> spark.session().conf().set(setting, away));
    } finally {
      spark.session().conf().set(setting, back);
    }
  }

  /** The last test, because Weft takes no new shuffles after it. */
  @Test
  @Order(Integer.MAX_VALUE)
  void aRetryKeepsTheRouteOfItsShuffleAfterFailures() throws IOException {
    WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
    assertOnlyTheOtherRowIsNoticed(() -> manager.failures().count("a test"));
    assertThat(manager.failures().refusal()).isPresent();
  }

  /** Two map tasks run again, and one of them makes another row. */
  private static void assertOnlyTheOtherRowIsNoticed(Runnable turnAway) throws IOException {
    List<Path> files = write("table", "id", map -> "false", 2);
    List<Path> others = write("other", "id DESC", map -> map == 0 ? "id = 5" : "false", 2);
    Runnable checked =
        () -> {
          turnAway.run();
          Dataset<Row> fresh = spark.session().read().parquet(folder.resolve("table").toString());
          assertThat(exchange(fresh.repartition(5, col("id"))))
              .as("a new shuffle")
              .isNotInstanceOf(WeftShuffleExchangeExec.class);
        };
    assertThat(noticed(files, others, checked)).hasSize(1);
  }

  @Test
  void aMismatchRepeatsAllMapTasksIfSparkIsToldSo() {
    Dataset<Row> rows = spark.session().range(0, ROWS, 1, 4).toDF().repartition(5, col("id"));
    assertThat(wefts(withColumns(rows)).columnarDependency().hasRowChecksums()).isTrue();
    assertThat(wefts(withColumns(rows)).columnarDependency().checksumMismatchFullRetryEnabled())
        .isTrue();
  }

  private static Dataset<Row> withColumns(Dataset<Row> rows) {
    spark.session().conf().set("spark.weft.route", "columns");
    try {
      rows.queryExecution().executedPlan();
      return rows;
    } finally {
      spark.session().conf().set("spark.weft.route", "auto");
    }
  }

  /**
   * Runs a map task over each file, and again after another file has taken its place.
   *
   * @param between called between the two
   * @return the map tasks of which the driver noticed other rows
   */
  private static Set<Integer> noticed(List<Path> files, List<Path> others, Runnable between)
      throws IOException {
    Path read = Files.createDirectories(Files.createTempDirectory(folder, "read"));
    copy(files, read);
    Dataset<Row> rows = spark.session().read().parquet(read.toString()).repartition(5, col("id"));
    RDD<InternalRow> shuffled = rows.queryExecution().toRdd();
    assertThat(shuffled.count()).isEqualTo((long) ROWS * files.size());
    int shuffleId = wefts(rows).columnarDependency().shuffleId();
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    ShuffleStatus shuffle = tracker.shuffleStatuses().apply(shuffleId);
    MapStatus[] first = shuffle.mapStatuses().clone();
    assertThat(first).hasSameSizeAs(files);
    assertThat(mismatches(shuffle)).isEmpty();

    between.run();
    copy(others, read);
    for (int map = 0; map < first.length; map++) {
      tracker.unregisterMapOutput(shuffleId, map, first[map].location());
    }
    assertThat(shuffled.count()).isEqualTo((long) ROWS * files.size());
    for (int map = 0; map < first.length; map++) {
      assertThat(shuffle.mapStatuses()[map].mapId()).isNotEqualTo(first[map].mapId());
    }
    return mismatches(shuffle);
  }

  private static void copy(List<Path> files, Path folder) throws IOException {
    for (int map = 0; map < files.size(); map++) {
      Path target = folder.resolve("part-%03d.parquet".formatted(map));
      if (Files.exists(target)) {
        assertThat(files.get(map)).as("a file of the same size").hasSize(Files.size(target));
      }
      Files.copy(files.get(map), target, StandardCopyOption.REPLACE_EXISTING);
    }
  }

  private static WeftShuffleExchangeExec wefts(Dataset<Row> rows) {
    return (WeftShuffleExchangeExec) exchange(rows);
  }

  private static SparkPlan exchange(Dataset<Row> rows) {
    return rows.queryExecution()
        .executedPlan()
        .find(node -> node instanceof ShuffleExchangeExec)
        .get();
  }

  private static Set<Integer> mismatches(ShuffleStatus shuffle) {
    try {
      Object indices = ShuffleStatus.class.getMethod("checksumMismatchIndices").invoke(shuffle);
      Set<Integer> maps = new TreeSet<>();
      ((scala.collection.Set<?>) indices).foreach(index -> maps.add((Integer) index));
      return maps;
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  /**
   * Writes files of all rows in an order. The first value after the key of some rows is another
   * one, in the next file the second, and so on.
   *
   * @param changed a condition for the changed rows of a file
   */
  private static List<Path> write(String name, String order, IntFunction<String> changed, int count)
      throws IOException {
    String file = "div(of, " + ROWS + ")";
    StringBuilder condition = new StringBuilder("CASE " + file);
    for (int i = 0; i < count; i++) {
      condition.append(" WHEN %d THEN %s".formatted(i, changed.apply(i)));
    }
    condition.append(" ELSE false END AS changed");
    List<String> columns = new ArrayList<>(List.of("id"));
    for (int i = 0; i < COLUMNS.size(); i++) {
      String[] one = COLUMNS.get(i);
      columns.add(
          "CASE WHEN changed AND %s %% %d = %d THEN %s ELSE %s END AS %s"
              .formatted(file, COLUMNS.size(), i, one[2], one[1], one[0]));
    }
    Path target = folder.resolve(name);
    spark
        .session()
        .range(0, (long) ROWS * count, 1, count)
        .selectExpr("id AS of", "id % " + ROWS + " AS id")
        .sortWithinPartitions(expr(order))
        .selectExpr("of", "id", condition.toString())
        .selectExpr(columns.toArray(String[]::new))
        .write()
        .mode("overwrite")
        .option("compression", "none")
        .option("parquet.enable.dictionary", "false")
        // Spark has planned to read a file of that size, and the size of a checksum varies.
        .option("parquet.page.write-checksum.enabled", "false")
        .parquet(target.toString());
    try (Stream<Path> files = Files.list(target)) {
      List<Path> parts =
          files.filter(part -> part.toString().endsWith(".parquet")).sorted().toList();
      assertThat(parts).hasSize(count);
      return parts;
    }
  }
}
