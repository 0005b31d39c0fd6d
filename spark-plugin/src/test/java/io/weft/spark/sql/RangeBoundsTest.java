package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.sql.RangeSample.Reservoir;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import scala.jdk.javaapi.CollectionConverters;

/** Ranges have Spark's bounds, if the sample has all rows, and each row is in Spark's range. */
class RangeBoundsTest {
  /** Results of tasks go through the user's serializer. */
  @RegisterExtension
  static final SqlSpark SPARK =
      new SqlSpark(Map.of("spark.serializer", "org.apache.spark.serializer.KryoSerializer"));

  @TempDir static Path folder;

  @BeforeAll
  static void tables() {
    SPARK.with(
        Map.of("spark.weft.enabled", "false"),
        () -> {
          SampleTables.create(SPARK.session(), folder);
          hard().createOrReplaceTempView("hard");
          return null;
        });
  }

  /** Keys with equal prefixes, nulls, signs of zero, NaN and few different values. */
  private static Dataset<Row> hard() {
    return SPARK
        .session()
        .range(0, 4000, 1, 3)
        .selectExpr(
            "id",
            "case id % 9 when 0 then null when 1 then 0.0D when 2 then -0.0D when 3 then"
                + " double('NaN') when 4 then double('-infinity') else id % 100 - 50.5D end x",
            "case id % 7 when 0 then null when 1 then float('NaN') when 2 then -0.0f"
                + " else cast(id % 30 as float) - 12 end f",
            "case id % 5 when 0 then null when 1 then '' when 2 then 'common prefix'"
                + " else concat('common prefix ', id % 211) end s",
            "if(id % 4 = 0, null, unhex(hex(concat('prefixes', id % 97)))) bin",
            "if(id % 10 = 0, null, if(id % 10 < 3, bigint(-9223372036854775808), id * 3 - 5000)) n",
            "cast((id % 400 - 200) * 1.0000001 as decimal(17, 7)) d",
            "cast((id % 400 - 200) as decimal(38, 10)) * 12345678901 big",
            "array(id % 3, id % 50) a",
            "named_struct('p', id % 20, 'q', concat('x', id % 30)) st",
            "cast(if(id % 6 = 0, null, id * 31 % 700 - 350) as int) i",
            "date_add(date'1970-01-01', if(id % 8 = 0, null, cast(id % 900 as int) - 450)) day",
            "id % 2 = 0 b");
  }

  static Stream<List<Column>> keys() {
    List<List<Column>> keys = new ArrayList<>();
    for (String name :
        List.of("x", "f", "s", "bin", "n", "i", "day", "d", "big", "a", "st", "b", "id")) {
      keys.add(List.of(col(name)));
      keys.add(List.of(col(name).desc()));
      keys.add(List.of(col(name).asc_nulls_last()));
      keys.add(List.of(col(name).desc_nulls_first()));
    }
    keys.add(List.of(col("b"), col("s").desc()));
    keys.add(List.of(col("s"), col("n").desc_nulls_first(), col("x")));
    keys.add(List.of(expr("n % 10"), expr("concat(s, 'y')").desc()));
    return keys.stream();
  }

  @ParameterizedTest
  @MethodSource("keys")
  void rowsAreInSparksPartitions(List<Column> keys) {
    List<String> sparks = placed("hard", keys, 40, "rows", false);
    assertThat(placed("hard", keys, 40, "rows", true)).isEqualTo(sparks);
    assertThat(placed("hard", keys, 40, "columns", true)).isEqualTo(sparks);
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 300})
  void anyNumberOfPartitions(int partitions) {
    for (List<Column> keys : List.of(List.of(col("n").desc()), List.of(col("b"), col("s")))) {
      List<String> sparks = placed("hard", keys, partitions, "rows", false);
      assertThat(placed("hard", keys, partitions, "rows", true)).isEqualTo(sparks);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"k", "dt", "ts", "ntz", "span", "months", "big", "g", "sh", "nothing_string"})
  void otherTypes(String key) {
    List<String> sparks = placed("facts", List.of(col(key)), 7, "rows", false);
    assertThat(placed("facts", List.of(col(key)), 7, "rows", true)).isEqualTo(sparks);
    assertThat(placed("facts", List.of(col(key)), 7, "columns", true)).isEqualTo(sparks);
  }

  /** Spark makes no more partitions than it has sampled rows. */
  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void fewRows(String route) {
    for (int rows : new int[] {1, 2, 5, 10, 11}) {
      assertThat(partitionSizes(rows, route, true)).isEqualTo(partitionSizes(rows, route, false));
    }
  }

  private static List<Integer> partitionSizes(int rows, String route, boolean weft) {
    return SPARK.with(
        Map.of(
            "spark.weft.route",
            route,
            "spark.weft.enabled",
            String.valueOf(weft),
            "spark.sql.adaptive.enabled",
            "false"),
        () ->
            SPARK
                .session()
                .range(0, rows, 1, 2)
                .repartitionByRange(10, col("id"))
                .javaRDD()
                .glom()
                .map(List::size)
                .collect());
  }

  @Test
  void noRows() {
    assertThat(placed("nothing", List.of(col("id")), 5, "rows", true)).isEmpty();
    assertThat(placed("nothing", List.of(col("id")), 5, "columns", true)).isEmpty();
  }

  /** Rows with their partitions. */
  private static List<String> placed(
      String table, List<Column> keys, int partitions, String route, boolean weft) {
    return SPARK.with(
        Map.of(
            "spark.weft.route",
            route,
            "spark.weft.enabled",
            String.valueOf(weft),
            "spark.sql.adaptive.enabled",
            "false",
            "spark.sql.execution.rangeExchange.sampleSizePerPartition",
            "100000"),
        () ->
            RowTexts.unordered(
                SPARK
                    .session()
                    .table(table)
                    .repartitionByRange(partitions, keys.toArray(Column[]::new))
                    .select(functions.spark_partition_id(), col("id"))
                    // Each task reads several partitions: a task for each would cost more.
                    .coalesce(2)));
  }

  /** With samples of some rows, ranges are about equal, also if map partitions are not. */
  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void samplesGiveEvenRanges(String route) {
    String unequal = "if(id < 1000, id, id * 7919 % 100003)";
    List<Row> sizes =
        SPARK.with(
            Map.of("spark.weft.route", route),
            () ->
                SPARK
                    .session()
                    .range(0, 60_000, 1, 2)
                    .unionAll(SPARK.session().range(0, 500, 1, 8))
                    .selectExpr(unequal + " k", "concat('text ', id) s")
                    .repartitionByRange(8, col("k"))
                    .groupBy(functions.spark_partition_id())
                    .count()
                    .collectAsList());
    assertThat(sizes).hasSize(8);
    assertThat(sizes).allMatch(size -> size.getLong(1) > 4500 && size.getLong(1) < 12_000);
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void sortedRowsAreSorted(String adaptive) {
    List<Row> rows =
        SPARK.with(
            Map.of("spark.sql.adaptive.enabled", adaptive),
            () -> {
              Dataset<Row> sorted = SPARK.session().sql("select * from hard order by s desc, id");
              List<Row> all = sorted.collectAsList();
              assertThat(Plans.nodes(Plans.of(sorted), RowsExchangeExec.class)).hasSize(1);
              return all;
            });
    List<Row> sparks =
        SPARK.with(
            Map.of("spark.weft.enabled", "false"),
            () -> SPARK.session().sql("select * from hard order by s desc, id").collectAsList());
    assertThat(rows.stream().map(row -> row.getLong(0)).toList())
        .isEqualTo(sparks.stream().map(row -> row.getLong(0)).toList());
  }

  /** The sample does not compute columns that are not keys. */
  @Test
  void theSampleHasOnlyKeys() {
    SPARK.with(
        Map.of("spark.sql.adaptive.enabled", "false"),
        () -> {
          Dataset<Row> ranges =
              SPARK
                  .session()
                  .range(100)
                  .selectExpr("id * 3 k", "concat('s', id) s", "id % 7 m")
                  .repartitionByRange(4, col("m"));
          assertThat(ranges.collectAsList()).hasSize(100);
          RowsExchangeExec exchange = Plans.nodes(Plans.of(ranges), RowsExchangeExec.class).get(0);
          RangePartitioning range = (RangePartitioning) exchange.outputPartitioning();
          SparkPlan keys =
              RangeSample.keysOnly(exchange.child(), CollectionConverters.asJava(range.ordering()));
          assertThat(CollectionConverters.asJava(keys.output()).stream().map(c -> c.name()))
              .containsExactly("m");
          return null;
        });
  }

  @Test
  void aReservoirHasAllOfFewRows() {
    Reservoir reservoir = new Reservoir(10, 1);
    for (int row = 0; row < 9; row++) {
      assertThat(reservoir.isNext()).isTrue();
      reservoir.take(new UnsafeRow(row));
    }
    assertThat(reservoir.rows()).isEqualTo(9);
    assertThat(reservoir.keys().stream().map(UnsafeRow::numFields))
        .containsExactly(0, 1, 2, 3, 4, 5, 6, 7, 8);
  }

  /** Each tenth of the rows gives about a tenth of the samples. */
  @Test
  void aReservoirTakesAllRowsWithEqualProbability() {
    int[] tenths = new int[10];
    for (int seed = 0; seed < 1000; seed++) {
      Reservoir reservoir = new Reservoir(20, seed);
      for (int row = 0; row < 1000; row++) {
        if (reservoir.isNext()) {
          reservoir.take(new UnsafeRow(row));
        } else {
          reservoir.skip(1);
        }
      }
      assertThat(reservoir.rows()).isEqualTo(1000);
      assertThat(reservoir.keys()).hasSize(20);
      reservoir.keys().forEach(key -> tenths[key.numFields() / 100]++);
    }
    // 20,000 samples: a tenth is 2,000, with a standard deviation of 42.
    assertThat(Arrays.stream(tenths)).allMatch(count -> count > 1780 && count < 2220);
  }
}
