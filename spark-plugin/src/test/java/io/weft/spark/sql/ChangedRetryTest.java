package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.weft.spark.LocalSpark;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkEnv;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A map task of the columns route that is run again and makes another row: the driver notices it by
 * the checksum of rows. Spark 4.2 compares them by default.
 */
class ChangedRetryTest {
  private static final int ROWS = 64;
  private static final int RETRIES = 40;

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

  @Test
  void everyChangedRowIsNoticed() throws IOException {
    Path table = write("table", "id", -1, 0);
    List<String> unnoticed = new ArrayList<>();
    for (int i = 0; i < RETRIES; i++) {
      int row = i * 7 % ROWS;
      Path other = write("other", "id", row, i % COLUMNS.size());
      while (Files.size(other) != Files.size(table)) {
        // Spark has planned to read a file of that size. Statistics may make it differ by a byte.
        row = (row + 1) % ROWS;
        other = write("other", "id", row, i % COLUMNS.size());
      }
      if (!isNoticed(table, other)) {
        unnoticed.add("row " + row + ", column " + COLUMNS.get(i % COLUMNS.size())[0]);
      }
    }
    assertThat(unnoticed).isEmpty();
  }

  /** The second order is of a shuffle that delivers blocks in another order. */
  @ParameterizedTest
  @CsvSource({"id", "-id", "id % 10"})
  void equalRowsInAnyOrderAreNoMismatch(String order) throws IOException {
    Path table = write("table", "id", -1, 0);
    assertThat(isNoticed(table, write("other", order, -1, 0))).isFalse();
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
   * Runs a map task over a file, and again after another file has taken its place.
   *
   * @return whether the driver noticed other rows
   */
  private static boolean isNoticed(Path file, Path other) throws IOException {
    Path read = Files.createDirectories(folder.resolve("read")).resolve("part.parquet");
    Files.copy(file, read, StandardCopyOption.REPLACE_EXISTING);
    assertThat(Files.size(other)).isEqualTo(Files.size(file));
    Dataset<Row> rows =
        spark.session().read().parquet(read.getParent().toString()).repartition(5, col("id"));
    RDD<InternalRow> shuffled = rows.queryExecution().toRdd();
    assertThat(shuffled.count()).isEqualTo(ROWS);
    int shuffleId = wefts(rows).columnarDependency().shuffleId();
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    ShuffleStatus shuffle = tracker.shuffleStatuses().apply(shuffleId);
    MapStatus first = shuffle.mapStatuses()[0];
    assertThat(mismatches(shuffle)).isZero();

    Files.copy(other, read, StandardCopyOption.REPLACE_EXISTING);
    tracker.unregisterMapOutput(shuffleId, 0, first.location());
    assertThat(shuffled.count()).isEqualTo(ROWS);
    assertThat(shuffle.mapStatuses()[0].mapId()).isNotEqualTo(first.mapId());
    return mismatches(shuffle) > 0;
  }

  private static WeftShuffleExchangeExec wefts(Dataset<Row> rows) {
    var exchange =
        rows.queryExecution().executedPlan().find(node -> node instanceof ShuffleExchangeExec);
    return (WeftShuffleExchangeExec) exchange.get();
  }

  private static int mismatches(ShuffleStatus shuffle) {
    try {
      Object indices = ShuffleStatus.class.getMethod("checksumMismatchIndices").invoke(shuffle);
      return ((scala.collection.Set<?>) indices).size();
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  /** Writes a file of all rows in an order, in which one value of a row may be another one. */
  private static Path write(String name, String order, int row, int column) throws IOException {
    List<String> columns = new ArrayList<>(List.of("id"));
    for (int i = 0; i < COLUMNS.size(); i++) {
      String[] one = COLUMNS.get(i);
      int changed = i == column ? row : -1;
      columns.add(
          "CASE WHEN id = %d THEN %s ELSE %s END AS %s".formatted(changed, one[2], one[1], one[0]));
    }
    Path target = folder.resolve(name);
    spark
        .session()
        .range(0, ROWS, 1, 1)
        .orderBy(org.apache.spark.sql.functions.expr(order))
        .coalesce(1)
        .selectExpr(columns.toArray(String[]::new))
        .write()
        .mode("overwrite")
        .option("compression", "none")
        .option("parquet.enable.dictionary", "false")
        .parquet(target.toString());
    try (Stream<Path> files = Files.list(target)) {
      return files.filter(file -> file.toString().endsWith(".parquet")).findFirst().orElseThrow();
    }
  }
}
