package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.shuffle.RowTarget;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Generated code that writes rows straight into chunks. */
class DirectStageTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  private static final Map<String, String> ROWS =
      Map.of(
          "spark.weft.route", "rows",
          "spark.sql.adaptive.enabled", "false",
          // Since Spark 4.2.
          "spark.sql.codegen.wholeStage.union.enabled", "true");

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

  private static final String LITERALS =
      "select id, cast(null as string) a, cast(null as decimal(30,2)) b, cast(null as binary) c,"
          + " -5 d, -7L e, float(-1.5) f, 'x' g, cast(-3.25 as decimal(9,2)) h, x'00ff' i,"
          + " cast(null as decimal(9,2)) j, cast(-2 as tinyint) l, true m from made";

  /** Calls of the function {@code inside}. */
  private static final AtomicInteger INSIDE = new AtomicInteger();

  private static final AtomicInteger OUTSIDE = new AtomicInteger();

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
        "select id, rand(1) r, monotonically_increasing_id() m, s from made",
        "select coalesce(f.k, d.k) k, id, s, name from facts f full join dims d on f.k = d.k",
        "select /*+ shuffle_hash(d) */ coalesce(f.k, d.k) k, id, name from facts f full join dims d"
            + " on f.k = d.k",
        LITERALS,
        numbers(64),
        numbers(65),
        "select id, x, b, s from kept join made using (id, x)");
  }

  /** Without a target the stage returns its rows. */
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

  /** Of columns with a null in each row, in turn. */
  private static String numbers(int columns) {
    return IntStream.range(0, columns)
        .mapToObj(i -> "if(id %% %d = %d, null, id + %d) c%d".formatted(columns, i, i, i))
        .collect(Collectors.joining(", ", "select ", " from range(0, 200, 1, 2)"));
  }

  @Test
  void randomSchemasHaveSparksBytes() {
    AtomicInteger compared = new AtomicInteger();
    for (int seed = 0; seed < 24; seed++) {
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
            if (hasGeneratedStage(moved)) {
              assertSameBytes(moved);
              compared.incrementAndGet();
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
    // Some keys are hashed by Spark, and more than 100 fields have no generated stage.
    assertThat(compared).hasValueGreaterThan(15);
  }

  private static boolean hasGeneratedStage(Dataset<Row> moved) {
    return Plans.nodes(Plans.of(moved), RowsExchangeExec.class).stream()
        .anyMatch(exchange -> exchange.child() instanceof WholeStageCodegenExec);
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

  /** All keys are in the sample, as in Spark's. */
  @ParameterizedTest
  @MethodSource("queries")
  void rangesAreSparks(String query) {
    Map<String, String> settings = new HashMap<>(ROWS);
    settings.put("spark.sql.execution.rangeExchange.sampleSizePerPartition", "10000");
    List<String> ours = SPARK.with(settings, () -> placed(ranges(query)));
    settings.put("spark.weft.enabled", "false");
    assertThat(ours).isEqualTo(SPARK.with(settings, () -> placed(ranges(query))));
  }

  private static Dataset<Row> ranges(String query) {
    Dataset<Row> rows = SPARK.session().sql(query);
    return rows.repartitionByRange(3, rows.col(rows.columns()[0]));
  }

  @ParameterizedTest
  @MethodSource("queries")
  void dealtRowsAreSparks(String query) {
    Supplier<List<String>> dealt =
        () -> RowTexts.unordered(SPARK.session().sql(query).repartition(3));
    assertThat(SPARK.with(ROWS, dealt))
        .isEqualTo(SPARK.with(Map.of("spark.weft.enabled", "false"), dealt));
  }

  /** Spark 4.2 makes one stage of all sides. */
  @Test
  void unionsArePlacedAsBySpark() {
    String query = "select id, k, s from made union all select id + 1, k, 'x' from facts";
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

  /** With a queue of rows only the first one of a task is made in the step of the offer. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "select inside(id) i, id from range(0, 1000, 1, 2) | true",
        "select inside(id) i, id, array(id) a from range(0, 1000, 1, 2) | false",
        "select inside(a.id) i, a.id, b.id from range(1000) a full join range(1000) b"
            + " on a.id = b.id | false",
        "select /*+ shuffle_hash(b) */ inside(a.id) i, a.id from range(1000) a full join"
            + " range(1000) b on a.id = b.id | true",
        "select inside(id) i, id, count(*) from range(1000) group by id | true",
      })
  void allRowsAreWrittenByTheStage(String query, String adaptive) {
    Map<String, String> settings = new HashMap<>(ROWS);
    settings.put("spark.sql.adaptive.enabled", adaptive);
    settings.put("spark.sql.autoBroadcastJoinThreshold", "-1");
    assertThat(SPARK.with(settings, () -> inside(query))).containsOnly(true).hasSize(3000);
    settings.put("spark.weft.enabled", "false");
    assertThat(SPARK.with(settings, () -> inside(query))).containsOnly(false);
  }

  /** Of rows by hash, by range and without keys. */
  private static List<Boolean> inside(String query) {
    Dataset<Row> rows = SPARK.session().sql(query);
    return Stream.of(
            rows.repartition(3, rows.col("i")),
            rows.repartitionByRange(3, rows.col("i")),
            rows.repartition(3))
        .flatMap(moved -> moved.collectAsList().stream())
        .map(row -> row.getBoolean(0))
        .toList();
  }

  private static Boolean isOffered(Long id) {
    boolean offered =
        Arrays.stream(new Throwable().getStackTrace())
            .anyMatch(
                frame ->
                    frame.getClassName().equals(RowTarget.class.getName())
                        && frame.getMethodName().equals("offer"));
    (offered ? INSIDE : OUTSIDE).incrementAndGet();
    return offered;
  }

  /** The keys need all columns of the stage, so it runs twice: for the sample and for the rows. */
  @Test
  void theStageWritesRowsOfASampleToo() {
    SPARK.with(
        ROWS,
        () -> {
          Dataset<Row> rows =
              SPARK.session().sql("select inside(id) i, id from range(1000) group by id");
          INSIDE.set(0);
          OUTSIDE.set(0);
          assertThat(rows.repartitionByRange(3, rows.col("i"), rows.col("id")).collectAsList())
              .hasSize(1000);
          assertThat(INSIDE).hasValue(2000);
          assertThat(OUTSIDE).hasValue(0);
          return null;
        });
  }

  /** As by a source with a wrong schema. */
  @Test
  void nullDecimalsInColumnsWithoutNulls() {
    StructType schema =
        new StructType()
            .add("id", DataTypes.LongType, false)
            .add("narrow", DataTypes.createDecimalType(9, 2), false)
            .add("wide", DataTypes.createDecimalType(30, 2), false);
    JavaRDD<InternalRow> source =
        JavaSparkContext.fromSparkContext(SPARK.session().sparkContext())
            .parallelize(List.of(1L, 2L, 3L), 2)
            .map(id -> new GenericInternalRow(new Object[] {id, null, null}));
    SPARK.with(
        ROWS,
        () -> {
          Dataset<Row> rows =
              ((org.apache.spark.sql.classic.SparkSession) SPARK.session())
                  .internalCreateDataFrame(source.rdd(), schema, false);
          assertSameBytes(rows.repartition(3, rows.col("id")));
          return null;
        });
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

  /** The text is in the row 22 times. */
  @Test
  void aRowIsTooLong() {
    String columns =
        IntStream.range(0, 22).mapToObj(i -> "s s" + i).collect(Collectors.joining(", "));
    SPARK.with(
        ROWS,
        () -> {
          Dataset<Row> texts =
              SPARK
                  .session()
                  .sql(
                      "select id, repeat('x', 100000000 + int(id)) s from range(1) distribute by id");
          Dataset<Row> rows =
              texts.selectExpr(("id, " + columns).split(", ")).repartition(3, texts.col("id"));
          assertThatThrownBy(rows::collectAsList)
              .hasStackTraceContaining("A row of 2200000192 bytes");
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
    RowsExchangeExec exchange =
        SPARK.with(
            ROWS,
            () -> {
              Dataset<Row> made = SPARK.session().table("made");
              SparkPlan plan = Plans.of(made.repartition(2, made.col("id")));
              return Plans.nodes(plan, RowsExchangeExec.class).get(0);
            });
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
      strings = {
        "select k, s, sum(d) d, max(big) big from facts group by k, s",
        LITERALS,
      })
  void codeNeedNoMethodForEachOperator(String query) {
    List<String> sparks = SPARK.with(Map.of("spark.weft.enabled", "false"), () -> placed(query));
    Map<String, String> settings = new HashMap<>(ROWS);
    settings.put("spark.sql.codegen.splitConsumeFuncByOperator", "false");
    assertThat(SPARK.with(settings, () -> placed(query))).isEqualTo(sparks);
  }

  /** Spark then runs its own stage, or else the operators without one. */
  @Test
  void codeMayBeTooLarge() {
    Map<String, String> settings = new HashMap<>(ROWS);
    settings.put("spark.sql.codegen.hugeMethodLimit", "100");
    SPARK.with(
        settings,
        () -> {
          Dataset<Row> rows =
              SPARK.session().sql("select inside(id) i, id, id + 1 x from range(0, 1000, 1, 2)");
          Dataset<Row> moved = rows.repartition(3, rows.col("i"));
          List<Row> arrived = moved.collectAsList();
          assertThat(arrived).hasSize(1000);
          assertThat(arrived.stream().filter(row -> row.getBoolean(0))).hasSizeLessThanOrEqualTo(2);
          assertThat(Plans.of(moved).toString()).doesNotContain("written by generated code");
          return null;
        });
    assertThat(SPARK.with(settings, () -> placed("select * from made"))).hasSize(3000);
  }

  /** Java formats numbers with other digits there. */
  @Test
  void codeDoesNotDependOnTheLocale() {
    Locale before = Locale.getDefault();
    try {
      Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
      assertThat(String.format("%d", 12)).isNotEqualTo("12");
      String query = "select inside(id) i, cast(id as decimal(12,2)) d, 't' || id s from range(99)";
      assertThat(SPARK.with(ROWS, () -> inside(query))).containsOnly(true).hasSize(3 * 99);
    } finally {
      Locale.setDefault(before);
    }
  }
}
