package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.spark_partition_id;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.GpuSpark;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Exchanges of batches on a GPU, compared with Spark's own shuffle by row and partition. */
class DeviceExchangeTest {
  private static final int ROWS = 3000;

  @RegisterExtension
  static final GpuSpark SPARK =
      new GpuSpark(
          Map.of(
              // Samples all rows, so that ranges are reproducible.
              "spark.sql.execution.rangeExchange.sampleSizePerPartition", "10000",
              "spark.weft.gpu.exchangeMemory", "16m",
              "spark.weft.gpu.pinnedMemory", "4m"));

  /** Every type with a place on a GPU, with nulls. */
  private static Dataset<Row> facts(SparkSession session, int rows) {
    return facts(session, rows, 3);
  }

  private static Dataset<Row> facts(SparkSession session, int rows, int partitions) {
    return session
        .range(0, rows, 1, partitions)
        .selectExpr(
            "id",
            "if(id % 13 = 0, null, cast(id * 7919 % 211 as int)) k",
            "if(id % 7 = 0, null, cast(id % 100 as tinyint)) g",
            "cast(id % 3000 as smallint) sh",
            "if(id % 11 = 0, null, repeat(concat('x', id % 97), cast(id % 5 as int))) s",
            "cast(id * 1.25 as decimal(12,2)) d",
            "if(id % 3 = 0, null, cast(id as decimal(30,6)) * -1000003) big",
            "if(id % 17 = 0, null, cast(id as float) / 3) f",
            "if(id % 5 = 0, -0.0d, id * 0.5d) x",
            "if(id % 23 = 0, null, id % 3 = 0) b",
            "date_add(date'2020-01-01', cast(id % 1000 as int)) dt",
            "timestamp_micros(1600000000000000 + id * 12345) ts",
            "timestamp_ntz'2021-05-05 05:05:05' + make_interval(0, 0, 0, 0, 0, 0, id) ntz",
            "if(id % 29 = 0, null, unhex(hex(id))) bin",
            "cast(null as string) nothing");
  }

  private static List<String> texts(Dataset<Row> rows) {
    return RowTexts.unordered(rows.withColumn("partition", spark_partition_id()));
  }

  /** Compares rows and partitions with Spark's, and checks that Weft used the GPU. */
  private static Dataset<Row> assertSame(
      UnaryOperator<Dataset<Row>> exchange, Dataset<Row> rows, boolean batchesExpected) {
    List<String> expected =
        SPARK.local().withSortShuffle(session -> texts(exchange.apply(WeftGpu.onDevice(rows))));
    Dataset<Row> ours =
        exchange.apply(WeftGpu.onDevice(rows)).withColumn("partition", spark_partition_id());
    assertThat(RowTexts.unordered(ours)).isEqualTo(expected);
    List<WeftShuffleExchangeExec> exchanges = Plans.wefts(ours);
    assertThat(exchanges).isNotEmpty();
    for (WeftShuffleExchangeExec each : exchanges) {
      assertThat(each.simpleString(1000)).contains("blocks on GPUs");
      if (batchesExpected) {
        assertThat(metric(each, ExchangeMetrics.DEVICE_TABLES_WRITTEN)).isPositive();
        assertThat(metric(each, ExchangeMetrics.DEVICE_TABLES_READ)).isPositive();
        assertThat(metric(each, ExchangeMetrics.BATCHES_READ))
            .isEqualTo(metric(each, ExchangeMetrics.DEVICE_TABLES_READ));
        assertThat(metric(each, "recordsRead")).isEqualTo(rows.count());
      }
    }
    return ours;
  }

  private static long metric(WeftShuffleExchangeExec exchange, String name) {
    return exchange.metrics().apply(name).value();
  }

  private static UnaryOperator<Dataset<Row>> by(int partitions, String... keys) {
    Column[] columns = java.util.Arrays.stream(keys).map(key -> expr(key)).toArray(Column[]::new);
    return rows -> rows.repartition(partitions, columns);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "id", "k", "g", "sh", "s", "d", "big", "f", "x", "b", "dt", "ts", "ntz", "bin", "nothing"
      })
  void everyTypeGoesWhereSparkSendsIt(String key) {
    assertSame(by(7, key), facts(SPARK.local().session(), ROWS), true);
  }

  @Test
  void severalKeysManyPartitionsAndOne() {
    assertSame(by(700, "s", "k", "big"), facts(SPARK.local().session(), ROWS), true);
    assertSame(rows -> rows.repartition(1), facts(SPARK.local().session(), ROWS), true);
  }

  @Test
  void partitionsThatOnlySparkComputesAreSentAlong() {
    assertSame(by(5, "k % 3", "upper(s)"), facts(SPARK.local().session(), ROWS), true);
    assertSame(
        rows -> rows.repartitionByRange(4, col("k"), col("s").desc()),
        facts(SPARK.local().session(), ROWS),
        true);
    SPARK.local().session().conf().set("spark.sql.execution.sortBeforeRepartition", "false");
    try {
      assertSame(rows -> rows.repartition(6), facts(SPARK.local().session(), ROWS), true);
    } finally {
      SPARK.local().session().conf().unset("spark.sql.execution.sortBeforeRepartition");
    }
  }

  @Test
  void fewRowsAndNone() {
    assertSame(by(40, "k"), facts(SPARK.local().session(), 4), true);
    assertSame(by(3, "k"), facts(SPARK.local().session(), ROWS).where("id < 0"), false);
  }

  /** Each partition is read as one batch. All written blocks are counted. */
  @Test
  void smallTablesOfManyMapTasksAreReadTogether() {
    Dataset<Row> read = assertSame(by(3, "k"), facts(SPARK.local().session(), ROWS, 90), true);
    WeftShuffleExchangeExec exchange = Plans.wefts(read).get(0);
    assertThat(metric(exchange, ExchangeMetrics.DEVICE_TABLES_WRITTEN)).isEqualTo(90);
    assertThat(metric(exchange, ExchangeMetrics.DEVICE_TABLES_READ)).isEqualTo(3);
    assertThat(metric(exchange, "localBlocksFetched")).isBetween(91L, 270L);
  }

  @Test
  void batchesStayOnTheDeviceFromExchangeToExchange() {
    Dataset<Row> twice =
        assertSame(
            rows -> WeftGpu.onDevice(rows.repartition(5, col("k"))).repartition(3, col("s")),
            facts(SPARK.local().session(), ROWS),
            true);
    assertThat(Plans.wefts(twice)).hasSize(2);
  }

  @Test
  void operatorsOfSparkReadTheRows() {
    UnaryOperator<Dataset<Row>> query =
        rows ->
            rows.repartition(5, col("k"))
                .groupBy("k")
                .agg(expr("sum(id)"), expr("max(s)"), expr("sum(big)"), expr("count(b)"));
    Dataset<Row> rows = facts(SPARK.local().session(), ROWS);
    List<String> expected =
        SPARK.local().withSortShuffle(s -> RowTexts.unordered(query.apply(rows)));
    assertThat(RowTexts.unordered(query.apply(WeftGpu.onDevice(rows)))).isEqualTo(expected);
  }

  /** As by Spark's clean-up after a query ({@code shuffleDependency.fileCleanup}). */
  @Test
  void rowsAreReadAgainAfterTheirShuffleWasRemoved() {
    Dataset<Row> moved =
        WeftGpu.onDevice(facts(SPARK.local().session(), ROWS)).repartition(3, col("k"));
    List<String> first = RowTexts.unordered(moved);
    for (WeftShuffleExchangeExec exchange : Plans.wefts(moved)) {
      int shuffle = exchange.shuffleDependency().shuffleId();
      SparkEnv.get().blockManager().master().removeShuffle(shuffle, true);
    }
    assertThat(RowTexts.unordered(moved)).isEqualTo(first);
  }

  /** About 40 MB on a GPU with room for 16 MB. Blocks spill to pinned memory and to the arena. */
  @Test
  void blocksThatDoNotFitAreSpilledAndReloaded() {
    Dataset<Row> wide =
        SPARK
            .local()
            .session()
            .range(0, 20_000, 1, 4)
            .selectExpr("id", "repeat(concat('row ', id, ' '), 200) s", "id % 100 k");
    long before = GpuSpark.device().tiers().spilledBytes();
    Dataset<Row> exchanged =
        WeftGpu.onDevice(wide)
            .repartition(8, col("k"))
            .selectExpr("sum(hash(id, s, k)) h", "count(*) n", "count(distinct id) ids");
    List<Row> expected =
        wide.selectExpr("sum(hash(id, s, k)) h", "count(*) n", "count(distinct id) ids")
            .collectAsList();
    assertThat(exchanged.collectAsList()).isEqualTo(expected);
    assertThat(GpuSpark.device().tiers().spilledBytes()).isGreaterThan(before);
  }

  @Test
  void functionsWorkOnBatches() {
    Dataset<Row> rows = facts(SPARK.local().session(), ROWS);
    StructType schema = rows.schema();
    Dataset<Row> mapped =
        WeftGpu.mapBatches(
            WeftGpu.onDevice(rows).repartition(4, col("k")), schema, DeviceFunctions::copy);
    assertThat(RowTexts.unordered(mapped)).isEqualTo(RowTexts.unordered(rows));
    assertThat(RowTexts.unordered(mapped.repartition(3, col("s")).where("k > 100")))
        .isEqualTo(RowTexts.unordered(rows.where("k > 100")));
    Dataset<Row> straight = WeftGpu.mapBatches(rows, schema, DeviceFunctions::copy);
    assertThat(RowTexts.unordered(straight.selectExpr("k", "id", "s")))
        .isEqualTo(RowTexts.unordered(rows.selectExpr("k", "id", "s")));
  }

  @Test
  void functionsWithInvalidResultsFailWithTheReason() {
    Dataset<Row> rows = SPARK.local().session().range(10).toDF();
    assertThatThrownBy(
            () -> WeftGpu.mapBatches(rows, rows.schema(), (batch, work) -> batch).collectAsList())
        .hasStackTraceContaining("returned the batch that it was given");
    StructType other = new StructType().add("id", "string");
    assertThatThrownBy(() -> WeftGpu.mapBatches(rows, other, DeviceFunctions::copy).collectAsList())
        .hasStackTraceContaining("column 0 of a table is long, but id is string");
    assertThatThrownBy(
            () -> WeftGpu.mapBatches(rows, new StructType().add("a", "array<int>"), null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("column a is array<int>, which a GPU table cannot hold");
  }

  @Test
  void columnsWithoutAPlaceOnADeviceStayOnTheHost() {
    Dataset<Row> rows = SPARK.local().session().range(100).selectExpr("id", "array(id) a");
    Dataset<Row> exchanged = WeftGpu.onDevice(rows).repartition(3, col("id"));
    assertThat(RowTexts.unordered(exchanged)).isEqualTo(RowTexts.unordered(rows));
    WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
    assertThat(manager.hostExchanges().counts())
        .containsKey("column a is array<bigint>, which a GPU table cannot hold");
  }
}
