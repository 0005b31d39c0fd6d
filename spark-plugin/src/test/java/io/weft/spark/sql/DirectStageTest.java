package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.shuffle.RowTarget;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Generated code that writes rows straight into chunks. */
class DirectStageTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  private static final Map<String, String> ROWS =
      Map.of("spark.weft.route", "rows", "spark.sql.adaptive.enabled", "false");

  /** Values that fit into a field or are bytes; each also with nulls. */
  private static final List<String> SIMPLE =
      List.of(
          "id % 3 = 0",
          "cast(id % 251 - 125 as tinyint)",
          "cast(id * 37 - 3000 as smallint)",
          "cast(id * -7919 as int)",
          "id * -1000000007",
          "if(id % 5 = 0, float('NaN'), cast(-id / 7 as float))",
          "case when id % 5 = 0 then double('-0.0') when id % 5 = 1 then double('NaN') else -id / 7"
              + " end",
          "cast(id * -1.25 as decimal(9,2))",
          "cast(id * -123456789.125 as decimal(18,4))",
          "cast(id as decimal(38,10)) * -1000003",
          "cast(id as decimal(20,0)) * 1000000000000",
          "try_cast(id % 300 as decimal(4,2))",
          "repeat(concat('ü', id % 50), cast(id % 40 as int))",
          "''",
          "if(id % 3 = 0, 'AbC', concat('x', id)) collate UTF8_LCASE",
          "unhex(hex(id * 1000003))",
          "date_add(date'1960-01-01', cast(id * 31 as int))",
          "timestamp_micros(id * 123456789 - 5000000000)",
          "timestamp_ntz'1965-05-05 05:05:05' + make_interval(0, 0, 0, id, 0, 0, id)",
          "make_dt_interval(0, 0, 0, id - 50)",
          "make_ym_interval(0, cast(id as int) - 50)");

  private static final List<String> NESTED =
      List.of(
          "array(id, null, id + 1)",
          "map(concat('m', id % 4), id, 'z', null)",
          "named_struct('a', id % 50, 'b', if(id % 2 = 0, null, 'odd'))",
          "make_interval(0, 0, 0, id, 0, 0, id)",
          "null");

  @BeforeAll
  static void tables() {
    SPARK.with(
        Map.of("spark.weft.enabled", "false"),
        () -> {
          SampleTables.create(SPARK.session(), folder);
          return null;
        });
    SPARK
        .session()
        .udf()
        .register(
            "inside", (UDF1<Long, Boolean>) DirectStageTest::isOffered, DataTypes.BooleanType);
    SPARK
        .session()
        .udf()
        .register("failing", (UDF1<Long, Long>) DirectStageTest::failAt, DataTypes.LongType);
  }

  static Stream<String> queries() {
    return Stream.of(
        "select * from made",
        "select * from facts where s = 'no such'",
        "select id, k, s, d, big, f, x, b, dt, ts, bin, constant from facts where id = 7",
        "select k, s, sum(x) x, max(big) big, count(*) n from facts group by k, s",
        "select k, s, sum(d) d, avg(big) a from facts group by k, s",
        "select f.id, f.s, d.name, d.v from facts f join dims d on f.k = d.k",
        "select /*+ merge(d) */ f.id, f.s, d.name from facts f left join dims d on f.k = d.k",
        "select id, k, explode(array(s, 'a', null)) e, big from facts",
        "select * from (select id, k, s from made sort by k, id)",
        "select id, k, s from facts limit 100",
        "select id, k, sum(id) over (partition by k order by id) + 1 w from facts",
        "select distinct k, s, f, d from made",
        "select id, repeat('long ', 300000) s, k from made where id % 1000 = 0",
        "select k, g, count(*) n from facts group by k, g with cube",
        "select id, x, b, s from kept join made using (id, x)");
  }

  /** Without a target, as under Spark's own shuffle, the stage returns its rows. */
  @ParameterizedTest
  @MethodSource("queries")
  void rowsHaveSparksBytes(String query) {
    SPARK.with(
        ROWS,
        () -> {
          Dataset<Row> rows = SPARK.session().sql(query);
          String key = rows.columns()[0];
          assertSameBytes(rows.repartition(3, rows.col(key)));
          return null;
        });
  }

  @Test
  void randomSchemasHaveSparksBytes() {
    for (int seed = 0; seed < 60; seed++) {
      Random random = new Random(seed);
      int rows = random.nextInt(4) == 0 ? random.nextInt(3) : random.nextInt(500);
      int columns = 1 + random.nextInt(random.nextInt(5) == 0 ? 99 : 20);
      List<String> expressions = new ArrayList<>();
      boolean nested = random.nextInt(3) == 0;
      for (int column = 0; column < columns; column++) {
        expressions.add(column(random, nested) + " c" + column);
      }
      String key = "c" + random.nextInt(columns);
      SPARK.with(
          ROWS,
          () -> {
            Dataset<Row> made =
                SPARK.session().range(0, rows, 1, 2).selectExpr(expressions.toArray(String[]::new));
            Dataset<Row> moved = made.repartition(4, made.col(key));
            if (Plans.nodes(Plans.of(moved), RowsExchangeExec.class).size() == 1) {
              assertSameBytes(moved);
            }
            List<String> placed = placed(moved);
            List<String> sparks =
                SPARK.with(
                    Map.of("spark.weft.enabled", "false"),
                    () -> placed(made.repartition(4, made.col(key))));
            assertThat(placed).isEqualTo(sparks).hasSize(rows);
            return null;
          });
    }
  }

  private static String column(Random random, boolean nested) {
    List<String> values = nested && random.nextBoolean() ? NESTED : SIMPLE;
    String value = values.get(random.nextInt(values.size()));
    return random.nextBoolean() ? value : "if(id %% 7 = 3, null, %s)".formatted(value);
  }

  private static void assertSameBytes(Dataset<Row> moved) {
    List<RowsExchangeExec> exchanges = Plans.nodes(Plans.of(moved), RowsExchangeExec.class);
    RowsExchangeExec exchange = exchanges.get(0);
    HashPartitioning partitioning = (HashPartitioning) exchange.outputPartitioning();
    assertThat(exchange.child()).isInstanceOf(WholeStageCodegenExec.class);
    DirectStage stage = DirectStage.of(exchange.child(), partitioning).orElseThrow();
    assertThat(bytes(stage)).isEqualTo(bytes(exchange.child()));
  }

  /** The packed rows of a plan, in the order of its partitions. */
  private static List<String> bytes(SparkPlan plan) {
    return plan.execute()
        .toJavaRDD()
        .map(row -> HexFormat.of().formatHex(((UnsafeRow) row).getBytes()))
        .collect();
  }

  /** Rows and their partitions, and the route of each. */
  @ParameterizedTest
  @MethodSource("queries")
  void partitionsAreSparks(String query) {
    List<String> sparks = SPARK.with(Map.of("spark.weft.enabled", "false"), () -> placed(query));
    assertThat(SPARK.with(ROWS, () -> placed(query))).isEqualTo(sparks);
  }

  private static List<String> placed(String query) {
    Dataset<Row> rows = SPARK.session().sql(query);
    return placed(rows.repartition(3, rows.col(rows.columns()[0])));
  }

  private static List<String> placed(Dataset<Row> moved) {
    return RowTexts.unordered(moved.selectExpr("spark_partition_id()", "*"));
  }

  /** A queue of rows would leave the step of the offer after the first row. */
  @ParameterizedTest
  @ValueSource(strings = {"id", "id, array(id)"})
  void allRowsAreWrittenByTheStage(String columns) {
    String query = "select inside(id) i, %s from range(0, 1000, 1, 2)".formatted(columns);
    assertThat(SPARK.with(ROWS, () -> inside(query, "i"))).containsOnly(true).hasSize(1000);
    assertThat(SPARK.with(Map.of("spark.weft.enabled", "false"), () -> inside(query, "i")))
        .containsOnly(false);
  }

  private static List<Boolean> inside(String query, String key) {
    Dataset<Row> rows = SPARK.session().sql(query);
    return rows.repartition(3, rows.col(key)).collectAsList().stream()
        .map(row -> row.getBoolean(0))
        .toList();
  }

  private static Boolean isOffered(Long id) {
    return Arrays.stream(new Throwable().getStackTrace())
        .anyMatch(
            frame ->
                frame.getClassName().equals(RowTarget.class.getName())
                    && frame.getMethodName().equals("offer"));
  }

  /** Weft is switched off after it made the plan. */
  @Test
  void sparksShuffleGetsTheRows() {
    Dataset<Row> rows =
        SPARK.with(
            ROWS,
            () -> {
              Dataset<Row> made = SPARK.session().sql("select inside(id) i, id, s from made");
              Dataset<Row> moved = made.repartition(3, made.col("id"));
              assertThat(Plans.nodes(Plans.of(moved), RowsExchangeExec.class)).hasSize(1);
              return moved;
            });
    SPARK.with(
        Map.of("spark.weft.enabled", "false"),
        () -> {
          List<Row> arrived = rows.collectAsList();
          assertThat(arrived).extracting(row -> row.getBoolean(0)).containsOnly(false);
          assertThat(arrived).extracting(row -> row.getLong(1)).doesNotHaveDuplicates();
          assertThat(arrived).hasSize(3000);
          return null;
        });
  }

  @Test
  void aFailureInTheStageFailsTheJobAndNotTheNext() {
    SPARK.with(
        ROWS,
        () -> {
          Dataset<Row> rows = SPARK.session().sql("select failing(id) f, id from made");
          assertThatThrownBy(() -> rows.repartition(3, rows.col("id")).collectAsList())
              .hasStackTraceContaining("row 2000");
          assertThat(placed("select * from made")).hasSize(3000);
          return null;
        });
  }

  private static Long failAt(Long id) {
    if (id == 2000) {
      throw new IllegalStateException("row " + id);
    }
    return id;
  }

  /** Spark compiles generated code with the class loader of the thread. */
  @Test
  void anotherClassLoaderKeepsSparksStage() {
    SparkPlan child =
        SPARK.with(
            ROWS,
            () ->
                Plans.nodes(
                        Plans.of(
                            SPARK
                                .session()
                                .table("made")
                                .repartition(2, new org.apache.spark.sql.Column("id"))),
                        RowsExchangeExec.class)
                    .get(0));
    RowsExchangeExec exchange = (RowsExchangeExec) child;
    HashPartitioning partitioning = (HashPartitioning) exchange.outputPartitioning();
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    assertThat(DirectStage.of(exchange.child(), partitioning)).isPresent();
    try {
      thread.setContextClassLoader(ClassLoader.getPlatformClassLoader());
      assertThat(DirectStage.of(exchange.child(), partitioning)).isEmpty();
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"spark.sql.codegen.wholeStage", "spark.sql.codegen.splitConsumeFuncByOperator"})
  void codeMayBeGeneratedInOtherWays(String setting) {
    String query = "select k, s, sum(d) d, max(big) big from facts group by k, s";
    List<String> sparks = SPARK.with(Map.of("spark.weft.enabled", "false"), () -> placed(query));
    SPARK.with(
        ROWS,
        () -> {
          SPARK.with(
              Map.of(setting, "false"),
              () -> {
                assertThat(placed(query)).isEqualTo(sparks);
                return null;
              });
          return null;
        });
  }

  /** Spark then runs the operators without a common stage. */
  @Test
  void codeMayBeTooLarge() {
    List<String> columns = IntStream.range(0, 60).mapToObj(i -> "id + " + i + " c" + i).toList();
    String query = "select " + String.join(", ", columns) + " from range(0, 500, 1, 2)";
    List<String> sparks = SPARK.with(Map.of("spark.weft.enabled", "false"), () -> placed(query));
    SPARK.with(
        ROWS,
        () -> {
          SPARK.with(
              Map.of("spark.sql.codegen.hugeMethodLimit", "100"),
              () -> {
                assertThat(placed(query)).isEqualTo(sparks);
                return null;
              });
          return null;
        });
  }
}
