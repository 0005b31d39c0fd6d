package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.RowToColumnarExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which exchanges the rule replaces, and the remarks in the plan. */
class ExchangePlanTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  private static final String FROM_BATCHES = "select /*+ repartition(3, v) */ * from stored";
  private static final String FROM_ROWS = "select /*+ repartition(3, id) */ id from made";

  @BeforeAll
  static void tables() {
    String path = folder.resolve("stored").toString();
    SPARK.session().range(100).selectExpr("id % 9 v", "id").write().parquet(path);
    SPARK.session().read().parquet(path).createOrReplaceTempView("stored");
    SPARK.session().range(100).createOrReplaceTempView("made");
    String numbers = folder.resolve("numbers").toString();
    SPARK
        .session()
        .range(1000)
        .selectExpr(
            "id",
            "if(id % 7 = 0, null, -id) a",
            "id / 3 b",
            "id * 7 c",
            "cast(if(id % 5 = 0, null, id) as timestamp) d",
            "id * id e",
            "if(id % 3 = 0, null, double('NaN')) f",
            "cast(null as bigint) g",
            "cast(id as decimal(38, 2)) h",
            "id % 2 = 0 i",
            "cast(id as string) s")
        .write()
        .parquet(numbers);
    SPARK.session().read().parquet(numbers).createOrReplaceTempView("numbers");
    String arrays = folder.resolve("arrays").toString();
    SPARK
        .session()
        .range(100)
        .selectExpr("id", "transform(sequence(1, cast(id % 7 as int)), i -> float(i * id)) floats")
        .write()
        .parquet(arrays);
    SPARK.session().read().parquet(arrays).createOrReplaceTempView("arrays");
    String nested = folder.resolve("nested").toString();
    SPARK
        .session()
        .range(100)
        .selectExpr(
            "id",
            "if(id % 5 = 0, null, named_struct('a', id, 'b', concat('name ', id))) as pair",
            "map('key', array(id, null), 'empty', array()) as entries",
            "cast(if(id % 3 = 0, null, id * 1000000007) as decimal(38, 10)) as amount")
        .write()
        .parquet(nested);
    SPARK.session().read().parquet(nested).createOrReplaceTempView("nested");
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void batchesTakeTheColumnsRouteByDefault(String adaptive) {
    String plan = with("auto", adaptive, () -> explained(FROM_BATCHES));
    assertThat(plan)
        .contains("WeftShuffleExchange hashpartitioning(v#")
        .contains("[weft: columns route, its input is batches]");
  }

  @ParameterizedTest
  @CsvSource({
    "true, 'id, a, b, c, d, e, f'",
    "false, 'id, a, b, c, d, e, f'",
    "true, 'id, a, b, c, d, e, f, g'",
  })
  void manyNumbersBecomeRows(String adaptive, String columns) {
    String query = numbers(columns);
    Dataset<Row> rows = withoutChecksums(() -> with("auto", adaptive, () -> run(query)));
    assertThat(Plans.wefts(rows)).isEmpty();
    assertThat(rows.queryExecution().toString())
        .contains(
            "[weft: no columns route, its numbers are faster as rows, written by generated code]");
    assertThat(RowTexts.unordered(rows))
        .isEqualTo(RowTexts.unordered(with("columns", adaptive, () -> run(query))));
  }

  /** Few numbers, and other types, are much smaller in columns. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "id, a, b, c, d, e",
        "id, a, b, c, d, e, f, i",
        "id, a, b, c, d, e, f, s",
        "id, a, b, c, d, e, f, g, h",
      })
  void otherBatchesStayColumns(String columns) {
    assertStaysColumns(() -> planned(numbers(columns)));
  }

  @Test
  void manyNumbersStayColumnsForOnePartitionAndForGpus() {
    String columns = "id, a, b, c, d, e, f";
    String one = "select /*+ repartition(1, id) */ " + columns + " from numbers";
    assertStaysColumns(() -> planned(one));
    assertStaysColumns(() -> WeftGpu.onDevice(SPARK.session().sql(numbers(columns))));
  }

  private static void assertStaysColumns(Supplier<Dataset<Row>> rows) {
    assertThat(Plans.wefts(withoutChecksums(() -> with("auto", "true", rows)))).hasSize(1);
  }

  /** Spark 4.2 computes them by default. */
  private static <T> T withoutChecksums(Supplier<T> work) {
    String keys = "spark.sql.shuffle.orderIndependentChecksum.";
    return SPARK.with(
        Map.of(keys + "enabled", "false", keys + "enableFullRetryOnMismatch", "false"), work);
  }

  private static String numbers(String columns) {
    return "select /*+ repartition(3, id) */ " + columns + " from numbers";
  }

  @ParameterizedTest
  @ValueSource(strings = {"enabled", "enableFullRetryOnMismatch"})
  void withRowChecksumsBatchesStillTakeTheColumnsRoute(String which) {
    String key = "spark.sql.shuffle.orderIndependentChecksum." + which;
    for (String query : new String[] {FROM_BATCHES, numbers("id, a, b, c, d, e, f")}) {
      String plan =
          withoutChecksums(
              () ->
                  SPARK.with(
                      Map.of(key, "true"), () -> with("auto", "true", () -> explained(query))));
      assertThat(plan).contains("[weft: columns route, its input is batches]");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "true, true, written by generated code",
    "false, true, written by generated code",
    "true, false, keys hashed by Weft",
    "false, false, keys hashed by Weft",
  })
  void codeWritesRowsIfItIsGenerated(String adaptive, String generated, String remark) {
    Dataset<Row> rows =
        SPARK.with(
            Map.of("spark.sql.codegen.wholeStage", generated),
            () -> with("auto", adaptive, () -> run(FROM_ROWS)));
    assertThat(Plans.wefts(rows)).isEmpty();
    assertThat(Plans.sparks(rows))
        .singleElement()
        .extracting(Object::getClass)
        .isEqualTo(RowsExchangeExec.class);
    assertThat(rows.queryExecution().toString()).contains("[weft: " + remark + "]");
  }

  /** Rules of other plugins look for Spark's own class. */
  @Test
  void rowsKeepSparksNodeUntilTheirStageIsMade() {
    Dataset<Row> rows = with("auto", "true", () -> planned(FROM_ROWS));
    assertThat(Plans.sparks(Plans.first(rows)))
        .singleElement()
        .extracting(Object::getClass)
        .isEqualTo(ShuffleExchangeExec.class);
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void otherKeysOfRowsAreLeftToSparksNodeWithoutARemark(String adaptive) {
    String query = "select id from made distribute by id + 1";
    Dataset<Row> rows = with("auto", adaptive, () -> planned(query));
    assertThat(Plans.wefts(rows)).isEmpty();
    assertThat(Plans.sparks(rows))
        .singleElement()
        .extracting(Object::getClass)
        .isEqualTo(ShuffleExchangeExec.class);
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void columnsCanBeForcedOnRows(String adaptive) {
    Dataset<Row> rows = with("columns", adaptive, () -> run(FROM_ROWS));
    assertThat(Plans.wefts(rows)).hasSize(1);
    assertThat(Plans.wefts(rows).get(0).child().supportsColumnar()).isFalse();
    assertThat(Plans.nodes(Plans.of(rows), RowToColumnarExec.class)).isEmpty();
    assertThat(Plans.nodes(Plans.of(rows), ColumnarToRowExec.class)).hasSize(1);
    assertThat(rows.queryExecution().toString())
        .contains("[weft: columns route, spark.weft.route=columns]");
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void arraysOfNumbersBecomeRowsInBulk(String adaptive) {
    String query = "select /*+ repartition(3, id) */ * from arrays";
    Dataset<Row> rows = with("auto", adaptive, () -> run(query));
    assertThat(Plans.nodes(Plans.of(rows), WeftColumnarToRowExec.class)).hasSize(1);
    assertThat(rows.sort("id").collectAsList())
        .isEqualTo(with("rows", adaptive, () -> planned(query)).sort("id").collectAsList());
    Dataset<Row> others = with("auto", adaptive, () -> run(FROM_BATCHES));
    assertThat(Plans.nodes(Plans.of(others), ColumnarToRowExec.class)).isNotEmpty();
    assertThat(Plans.nodes(Plans.of(others), WeftColumnarToRowExec.class)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void nestedColumnsAndLongDecimalsAreCopiedIntoRows(String adaptive) {
    for (String columns : new String[] {"id, pair", "id, entries", "id, amount", "*"}) {
      String query = "select /*+ repartition(3, id) */ " + columns + " from nested";
      Dataset<Row> rows = with("auto", adaptive, () -> run(query));
      assertThat(Plans.nodes(Plans.of(rows), WeftColumnarToRowExec.class)).hasSize(1);
      assertThat(rows.sort("id").collectAsList())
          .isEqualTo(with("rows", adaptive, () -> planned(query)).sort("id").collectAsList());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void noPlanIsChangedOnTheRowsRoute(String adaptive) {
    assertThat(Plans.wefts(with("rows", adaptive, () -> planned(FROM_BATCHES)))).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void theRuleCanBeTurnedOffWhileTheApplicationRuns(String adaptive) {
    Dataset<Row> off =
        SPARK.with(
            Map.of("spark.weft.enabled", "false"),
            () -> with("columns", adaptive, () -> planned(FROM_BATCHES)));
    assertThat(Plans.wefts(off)).isEmpty();
    assertThat(Plans.wefts(with("columns", adaptive, () -> planned(FROM_BATCHES)))).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void aRepartitionThatOrdersRowsFirstShowsItsReason(String adaptive) {
    String query = "select /*+ repartition(3) */ * from stored";
    String reason =
        "[weft: no columns route, a repartition orders rows first"
            + " (spark.sql.execution.sortBeforeRepartition)";
    Dataset<Row> rows = with("auto", adaptive, () -> run(query));
    assertThat(rows.queryExecution().toString()).contains(reason + ", rows dealt by hash]");
    Dataset<Row> unsorted =
        SPARK.with(
            Map.of("spark.sql.execution.sortBeforeRepartition", "false"),
            () -> with("auto", adaptive, () -> planned(query)));
    assertThat(Plans.wefts(unsorted)).hasSize(1);
  }

  /** The route is chosen when stages are planned. A later setting must not change half a plan. */
  @Test
  void aPlanMadeWhileWeftWasOffRunsWithoutWeft() {
    Dataset<Row> rows =
        SPARK.with(
            Map.of("spark.weft.enabled", "false"),
            () -> {
              Dataset<Row> planned = planned(FROM_BATCHES);
              Plans.of(planned);
              return planned;
            });
    with(
        "columns",
        "true",
        () -> {
          assertThat(rows.collectAsList()).hasSize(100);
          return null;
        });
    assertThat(Plans.nodes(Plans.of(rows), RoutedExchangeExec.class)).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"true,columns", "false,columns", "true,rows", "false,rows"})
  void equalExchangesAreReused(String adaptive, String route) {
    String query =
        "with t as (select v, count(*) c from stored group by v)"
            + " select /*+ merge(b) */ a.c, b.c from t a join t b on a.v = b.v";
    Dataset<Row> rows =
        SPARK.with(
            Map.of("spark.sql.autoBroadcastJoinThreshold", "-1"),
            () -> with(route, adaptive, () -> run(query)));
    Class<?> node =
        route.equals("columns") ? WeftShuffleExchangeExec.class : RowsExchangeExec.class;
    assertThat(Plans.nodes(Plans.of(rows), ReusedExchangeExec.class))
        .isNotEmpty()
        .allMatch(reused -> node.isInstance(reused.child()));
  }

  @Test
  void copiesKeepTheirClass() {
    WeftShuffleExchangeExec node =
        with("columns", "false", () -> Plans.wefts(planned(FROM_ROWS)).get(0));
    SparkPlan copy =
        node.copy(
            node.outputPartitioning(),
            node.child(),
            node.shuffleOrigin(),
            node.advisoryPartitionSize());
    assertThat(copy).isEqualTo(node).hasSameHashCodeAs(node);
    assertThat(((WeftShuffleExchangeExec) copy).reason()).isEqualTo(node.reason());
    assertThat(node.canonicalized()).isInstanceOf(WeftShuffleExchangeExec.class);
    ShuffleExchangeExec sparks =
        new ShuffleExchangeExec(
            node.outputPartitioning(),
            node.child(),
            node.shuffleOrigin(),
            node.advisoryPartitionSize());
    assertThat(node).isNotEqualTo(sparks);
    assertThat(sparks).isNotEqualTo(node);
  }

  private static <T> T with(String route, String adaptive, Supplier<T> work) {
    return SPARK.with(
        Map.of("spark.weft.route", route, "spark.sql.adaptive.enabled", adaptive), work);
  }

  private static org.apache.spark.sql.classic.Dataset<Row> planned(String query) {
    var rows = (org.apache.spark.sql.classic.Dataset<Row>) SPARK.session().sql(query);
    rows.queryExecution().executedPlan();
    return rows;
  }

  private static org.apache.spark.sql.classic.Dataset<Row> run(String query) {
    var rows = planned(query);
    rows.collect();
    return rows;
  }

  private static String explained(String query) {
    return planned(query).queryExecution().toString();
  }
}
