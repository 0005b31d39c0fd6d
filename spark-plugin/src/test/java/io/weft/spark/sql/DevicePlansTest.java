package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Batches on a GPU in many kinds of plans, compared with Spark's own shuffle. */
class DevicePlansTest {
  private static LocalSpark spark;

  @TempDir static Path folder;

  @BeforeAll
  static void start() {
    spark =
        DoubleGpus.start(
            Map.of(
                "spark.master", "local[2]",
                "spark.weft.route", "auto",
                "spark.sql.warehouse.dir", folder.resolve("warehouse").toString(),
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false"));
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  @AfterEach
  void dropViews() {
    for (String view : List.of("trips", "copies", "nine")) {
      session().catalog().dropTempView(view);
    }
  }

  private static SparkSession session() {
    return spark.session();
  }

  private static Map<String, Long> hostExchanges() {
    return ((WeftShuffleManager) SparkEnv.get().shuffleManager()).hostExchanges().counts();
  }

  private static Dataset<Row> mapped(Dataset<Row> rows) {
    return WeftGpu.mapBatches(rows, rows.schema(), DeviceFunctions::copy);
  }

  private static Dataset<Row> collated() {
    return session()
        .range(0, 500, 1, 2)
        .selectExpr("id", "concat(if(id % 2 = 0, 'Ab', 'aB'), id % 10) collate UTF8_LCASE s");
  }

  private static void assertSame(Dataset<Row> rows, UnaryOperator<Dataset<Row>> query) {
    List<String> expected =
        spark.withSortShuffle(session -> RowTexts.unordered(query.apply(WeftGpu.onDevice(rows))));
    Dataset<Row> ours = query.apply(WeftGpu.onDevice(rows));
    assertThat(RowTexts.unordered(ours)).isEqualTo(expected);
    assertThat(Plans.wefts(ours).get(0).simpleString(1000)).contains("blocks on GPUs");
  }

  @Test
  void stringsWithACollationFromRowsAndFromFiles() {
    Dataset<Row> rows = collated();
    String path = folder.resolve("collated").toString();
    rows.write().parquet(path);
    Dataset<Row> stored = session().read().parquet(path);
    for (Dataset<Row> each : List.of(rows, stored)) {
      assertSame(each, all -> all.repartition(4, col("id")));
      assertSame(
          each,
          all -> all.repartition(4, col("s")).groupBy("s").agg(expr("count(id) n")).select("n"));
      assertThat(RowTexts.unordered(mapped(each))).isEqualTo(RowTexts.unordered(each));
      assertThat(RowTexts.unordered(WeftGpu.onDevice(each))).isEqualTo(RowTexts.unordered(each));
    }
  }

  /** Spark treats NaNs of different bits as one key, and both zeros as one key. */
  @Test
  void numbersThatAreEqualByValueOnly() {
    List<Double> values =
        List.of(
            Double.NaN,
            Double.longBitsToDouble(0x7ff8000000000123L),
            Double.longBitsToDouble(0xfff8000000000001L),
            0.0,
            -0.0,
            Double.NEGATIVE_INFINITY,
            1.5);
    Dataset<Row> rows =
        session()
            .createDataset(values, Encoders.DOUBLE())
            .selectExpr("value x", "cast(value as float) f");
    for (String key : List.of("x", "f")) {
      assertSame(
          rows,
          all ->
              all.repartition(5, col(key))
                  .selectExpr("hex(cast(x as string)) x", "f", "spark_partition_id() p"));
    }
  }

  @Test
  void resultsOfAFunctionMeetThemselves() {
    Dataset<Row> rows = session().range(0, 100, 1, 2).selectExpr("id", "id % 10 k");
    Dataset<Row> made = mapped(rows);
    Supplier<Dataset<Row>> joined =
        () -> made.as("a").join(made.as("b"), expr("a.k = b.id")).selectExpr("a.id x", "b.k y");
    assertThat(RowTexts.unordered(joined.get()))
        .isEqualTo(
            RowTexts.unordered(
                rows.as("a").join(rows.as("b"), expr("a.k = b.id")).selectExpr("a.id", "b.k")));
    assertThat(made.intersect(made).count()).isEqualTo(100);
    assertThat(made.union(made).count()).isEqualTo(200);
    Dataset<Row> sums = made.groupBy("k").agg(expr("sum(id) total"));
    assertThat(made.join(sums, "k").count()).isEqualTo(100);
  }

  @Test
  void aFunctionIsRequired() {
    Dataset<Row> rows = session().range(3).toDF();
    assertThatThrownBy(() -> WeftGpu.mapBatches(rows, rows.schema(), null))
        .isInstanceOf(NullPointerException.class)
        .hasMessageContaining("no function");
  }

  /** Names of functions are of all sessions and in any case; a view finds them by name, too. */
  @Test
  void functionsAreUsedFromSql() {
    Dataset<Row> rows =
        session().range(0, 300, 1, 3).selectExpr("id", "id % 7 k", "concat('trip ', id) s");
    rows.createOrReplaceTempView("trips");
    WeftGpu.register("Copied", rows.schema(), DeviceFunctions::copy);
    Dataset<Row> ours =
        session()
            .sql(
                "SELECT s, k + 1 FROM weft_map_batches('copied', TABLE(SELECT * FROM"
                    + " weft_on_device(TABLE(trips)) DISTRIBUTE BY k)) WHERE id > 5");
    assertThat(RowTexts.unordered(ours))
        .isEqualTo(RowTexts.unordered(rows.filter("id > 5").selectExpr("s", "k + 1")));
    assertThat(Plans.of(ours).toString())
        .containsSubsequence("ColumnarToRow", "DeviceMap", "blocks on GPUs", "DeviceUpload");

    session()
        .sql(
            "CREATE OR REPLACE TEMP VIEW copies AS SELECT * FROM weft_map_batches('COPIED',"
                + " TABLE(SELECT * FROM trips WHERE id < 10))");
    assertThat(session().sql("SELECT a.s FROM copies a JOIN copies b ON a.k = b.id").count())
        .isEqualTo(10);
  }

  /** As on a server of Spark Connect, whose clients have no access to its JVM. */
  @Test
  void classesOfTheSettingsNameFunctions() {
    session().range(9).createOrReplaceTempView("nine");
    String call = "SELECT * FROM weft_map_batches('By settings', TABLE(nine))";
    try {
      for (String wrong : List.of("no.such.Class", "java.lang.String", "java.lang.Runnable")) {
        SparkEnv.get().conf().set("spark.weft.gpu.functions", wrong);
        assertThatThrownBy(() -> session().sql(call))
            .as(wrong)
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContainingAll("spark.weft.gpu.functions names " + wrong, "Runnable");
      }
      SparkEnv.get().conf().set("spark.weft.gpu.functions", Naming.class.getName() + ", ");
      assertThatThrownBy(() -> session().sql(call))
          .hasMessageContaining("must be empty or class names");
      SparkEnv.get().conf().set("spark.weft.gpu.functions", Naming.class.getName());
      assertThat(session().sql(call).count()).isEqualTo(9);
    } finally {
      SparkEnv.get().conf().remove("spark.weft.gpu.functions");
    }
    assertThat(session().sql(call).count()).as("found before").isEqualTo(9);
  }

  /** A class that a setting names. */
  public static final class Naming implements Runnable {
    @Override
    public void run() {
      StructType schema = new StructType().add("id", DataTypes.LongType, false);
      WeftGpu.register("by settings", schema, DeviceFunctions::copy);
    }
  }

  @Test
  void callsInSqlThatAreNoFunctionsSaySo() {
    session().range(9).createOrReplaceTempView("nine");
    for (String call :
        List.of(
            "weft_map_batches('nothing', TABLE(nine))",
            "weft_map_batches('copied', 'nine')",
            "weft_on_device('nine', TABLE(nine))",
            "weft_on_device(TABLE(nine) PARTITION BY id)")) {
      assertThatThrownBy(() -> session().sql("SELECT * FROM " + call))
          .as(call)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("weft_");
    }
    assertThatThrownBy(() -> WeftGpu.register("f", rowsOfMaps().schema(), DeviceFunctions::copy))
        .hasMessageContaining("the function's result cannot be a table of a GPU: column m");
  }

  private static Dataset<Row> rowsOfMaps() {
    return session().range(10).selectExpr("id", "map(id, 1) m");
  }

  /** A command runs exactly once, before its result is available. */
  @Test
  void commandsRunOnce() {
    session().sql("create table made_once (id bigint) using parquet");
    Dataset<Row> result = session().sql("insert into made_once values (1)");
    assertThat(WeftGpu.onDevice(result).collectAsList()).isEmpty();
    assertThat(session().table("made_once").count()).isEqualTo(1);
    Dataset<Row> shown = session().sql("show tables");
    assertThat(WeftGpu.onDevice(shown).repartition(2, col("tableName")).count()).isEqualTo(1);
  }

  /** The plan does not show blocks on GPUs if rows are ordered before partitioning. */
  @Test
  void aRepartitionThatOrdersRowsGoesBetweenHosts() {
    session().conf().set("spark.weft.route", "columns");
    try {
      Dataset<Row> spread = WeftGpu.onDevice(session().range(100).toDF()).repartition(3);
      assertThat(spread.collectAsList()).hasSize(100);
      WeftShuffleExchangeExec exchange = Plans.wefts(spread).get(0);
      assertThat(exchange.simpleString(1000)).doesNotContain("GPUs");
      assertThat(exchange.metrics().contains(ExchangeMetrics.DEVICE_TABLES_READ)).isFalse();
      assertThat(hostExchanges())
          .containsKey(
              "a repartition orders rows first (spark.sql.execution.sortBeforeRepartition)");
    } finally {
      session().conf().set("spark.weft.route", "auto");
    }
  }

  @Test
  void aReasonIsCountedOncePerRequest() {
    assertThat(WeftGpu.onDevice(session().range(10).toDF()).count()).isEqualTo(10);
    assertThat(hostExchanges()).doesNotContainKey("it has no columns");
    Dataset<Row> arrays = WeftGpu.onDevice(rowsOfMaps());
    Dataset<Row> spread = arrays.repartition(3, col("id"));
    for (int run = 0; run < 2; run++) {
      assertThat(spread.select("id", "m").collectAsList()).hasSize(10);
    }
    assertThat(hostExchanges())
        .containsEntry("column m is map<bigint,int>, which a GPU table cannot hold", 1L);
  }
}
