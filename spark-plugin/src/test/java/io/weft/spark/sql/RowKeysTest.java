package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryException;
import org.apache.spark.sql.streaming.Trigger;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Rows whose keys Weft hashes meet rows with equal keys that Spark hashes: in a join whose other
 * side has an expression as key, and in a stream's state that was written without Weft.
 */
class RowKeysTest {
  @RegisterExtension static final SqlSpark SPARK = new SqlSpark();

  @TempDir static Path folder;

  private static final Map<String, String> OFF = Map.of("spark.weft.enabled", "false");

  /** Columns of all types of keys by name, with null, equal and special values. */
  private static final Map<String, String> KEYS = keys();

  private static Map<String, String> keys() {
    Map<String, String> keys = new HashMap<>();
    keys.put("flag", "id % 2 = 0");
    keys.put("tiny", "cast(id % 100 - 50 as tinyint)");
    keys.put("small", "cast(id * 37 - 3000 as smallint)");
    keys.put("num", "cast(id * -7919 as int)");
    keys.put("big", "id * -1000000007");
    keys.put(
        "f",
        "case when id % 5 = 0 then cast(-0.0 as float) when id % 5 = 1 then cast('NaN' as float)"
            + " when id % 5 = 2 then cast(0.0 as float) else cast(id / 7 as float) end");
    keys.put(
        "x",
        "case when id % 5 = 0 then double('-0.0') when id % 5 = 1 then double('NaN')"
            + " when id % 5 = 2 then 0d when id % 5 = 3 then double('-Infinity') else id / 7 end");
    keys.put("dec9", "cast(id * -1.25 as decimal(9,2))");
    keys.put("dec18", "cast(id * -123456789.125 as decimal(18,4))");
    keys.put("dec38", "cast(id as decimal(38,10)) * -1000003");
    keys.put("text", "repeat(concat('ü', id % 50), cast(id % 40 as int))");
    keys.put("folded", "if(id % 3 = 0, 'AbC', concat('x', id)) collate UTF8_LCASE");
    keys.put("unicode", "if(id % 3 = 0, 'É', concat('e', id)) collate UNICODE_CI");
    keys.put("bin", "unhex(hex(id * 1000003))");
    keys.put("dt", "date_add(date'1960-01-01', cast(id * 31 as int))");
    keys.put("ts", "timestamp_micros(id * 123456789 - 5000000000)");
    keys.put("ntz", "timestamp_ntz'1965-05-05 05:05:05' + make_interval(0, 0, 0, id, 0, 0, id)");
    keys.put("span", "make_dt_interval(0, 0, 0, id - 50)");
    keys.put("months", "make_ym_interval(0, cast(id as int) - 50)");
    keys.put("arr", "array(id, null, id + 1)");
    keys.put("st", "named_struct('a', id % 50, 'b', if(id % 2 = 0, null, 'odd'))");
    return keys;
  }

  @BeforeAll
  static void tables() {
    SPARK.with(
        OFF,
        () -> {
          List<String> columns = new ArrayList<>(List.of("id"));
          KEYS.forEach(
              (name, key) -> columns.add("if(id %% 13 = 0, null, %s) %s".formatted(key, name)));
          keyed(columns).createOrReplaceTempView("made");
          SPARK
              .session()
              .sql(
                  ("create table padded (id bigint, c char(9), v varchar(9)) using parquet"
                          + " location '%s'")
                      .formatted(folder.resolve("padded").toUri()));
          SPARK
              .session()
              .sql("insert into padded select id, 'a' || id % 40, 'b' || id % 40 from made");
          return null;
        });
  }

  private static Dataset<Row> keyed(List<String> columns) {
    return SPARK.session().range(0, 200, 1, 3).selectExpr(columns.toArray(String[]::new));
  }

  static Stream<String[]> tablesAndKeys() {
    return Stream.concat(
        KEYS.keySet().stream().map(key -> new String[] {"made", key}),
        Stream.of(new String[] {"padded", "c"}, new String[] {"padded", "v"}));
  }

  @ParameterizedTest(name = "{1}")
  @MethodSource("tablesAndKeys")
  void meetTheirEquals(String table, String key) {
    String sql =
        ("select a.id, b.id from (select %2$s, sum(id) id from %1$s group by %2$s) a"
                + " join %1$s b on a.%2$s = if(b.id >= 0, b.%2$s, null)")
            .formatted(table, key);
    List<String> sparks = SPARK.with(OFF, () -> RowTexts.unordered(SPARK.session().sql(sql)));
    assertThat(sparks).isNotEmpty();
    assertThat(SPARK.with(on("false"), () -> RowTexts.unordered(SPARK.session().sql(sql))))
        .isEqualTo(sparks);
  }

  private static Map<String, String> on(String adaptive) {
    return Map.of(
        "spark.weft.route", "rows",
        "spark.sql.autoBroadcastJoinThreshold", "-1",
        "spark.sql.adaptive.enabled", adaptive);
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void oneSideIsHashedBySpark(String adaptive) {
    String join = "select a.id from made a join made b on a.num = if(b.id >= 0, b.num, null)";
    SparkPlan plan = SPARK.with(on(adaptive), () -> ran(join));
    assertThat(Plans.sparks(plan))
        .extracting(exchange -> exchange.getClass().getSimpleName())
        .containsExactlyInAnyOrder("RowsExchangeExec", "ShuffleExchangeExec");
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void asManyExchangesAreReusedAsWithoutWeft(String adaptive) {
    String grouped =
        "(select a.num, a.text, count(*) c from made a join made b on a.num = b.num"
            + " group by a.num, a.text)";
    String query =
        "select l.c + r.c from "
            + grouped
            + " l join "
            + grouped
            + " r on l.num = r.num where l.c > (select avg(c) from "
            + grouped
            + ") - 100";
    Map<String, String> off = new HashMap<>(on(adaptive));
    off.put("spark.weft.enabled", "false");
    SparkPlan sparks = SPARK.with(off, () -> ran(query));
    SparkPlan wefts = SPARK.with(on(adaptive), () -> ran(query));
    assertThat(Plans.nodes(wefts, ReusedExchangeExec.class))
        .hasSameSizeAs(Plans.nodes(sparks, ReusedExchangeExec.class))
        .isNotEmpty();
    assertThat(Plans.sparks(wefts)).hasSameSizeAs(Plans.sparks(sparks));
    assertThat(Plans.nodes(wefts, RowsExchangeExec.class)).hasSize(2);
  }

  private static SparkPlan ran(String query) {
    Dataset<Row> rows = SPARK.session().sql(query);
    rows.collectAsList();
    return Plans.of(rows);
  }

  /** Spark does not exchange a cached table again that has the partitions of a join. */
  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void aCachedTableMeetsOthersAfterASwitch(String first) {
    Map<String, String> before = new HashMap<>(on("false"));
    before.put("spark.weft.enabled", first);
    Map<String, String> later = new HashMap<>(on("false"));
    later.put("spark.weft.enabled", String.valueOf(!Boolean.parseBoolean(first)));
    String join =
        "select c.id, m.id from cached c join made m on c.num = m.num and c.text = m.text";
    List<String> expected =
        SPARK.with(
            OFF, () -> RowTexts.unordered(SPARK.session().sql(join.replace("cached", "made"))));
    Dataset<Row> cached =
        SPARK.with(
            before,
            () -> {
              Dataset<Row> rows =
                  SPARK.session().sql("select * from made distribute by num, text").cache();
              rows.createOrReplaceTempView("cached");
              assertThat(rows.count()).isEqualTo(200);
              return rows;
            });
    SPARK.with(
        later,
        () -> {
          Dataset<Row> rows = SPARK.session().sql(join);
          assertThat(RowTexts.unordered(rows)).isEqualTo(expected);
          assertThat(Plans.sparks(rows)).hasSize(1);
          return null;
        });
    cached.unpersist(true);
  }

  @Test
  void aStreamsStateIsFoundAgain() {
    Path input = folder.resolve("input");
    Path state = folder.resolve("state");
    for (int round = 0; round < 2; round++) {
      boolean weft = round % 2 == 1;
      long from = round * 50L;
      SPARK.with(
          OFF,
          () -> {
            SPARK
                .session()
                .range(from, from + 150)
                .selectExpr("id", "cast(id % 97 as int) k", "'t' || id % 89 s", "id / 4d x")
                .write()
                .mode("append")
                .parquet(input.toString());
            return null;
          });
      SPARK.with(
          Map.of("spark.weft.enabled", String.valueOf(weft)),
          () -> {
            advance(input, state, weft);
            return null;
          });
      List<String> expected =
          SPARK.with(
              OFF,
              () -> RowTexts.unordered(counted(SPARK.session().read().parquet(input.toString()))));
      assertThat(RowTexts.unordered(SPARK.session().table("counts"))).isEqualTo(expected);
    }
  }

  private static Dataset<Row> counted(Dataset<Row> rows) {
    return rows.groupBy("k", "s").count();
  }

  private static void advance(Path input, Path state, boolean weft) {
    try {
      StreamingQuery query =
          counted(
                  SPARK
                      .session()
                      .readStream()
                      .schema("id bigint, k int, s string, x double")
                      .parquet(input.toString()))
              .writeStream()
              .queryName("counts")
              .outputMode("complete")
              .format("memory")
              .option("checkpointLocation", state.toString())
              .trigger(Trigger.AvailableNow())
              .start();
      assertThat(query.awaitTermination(600_000)).as("the query ends").isTrue();
      assertThat(Plans.nodes(lastPlan(query), RowsExchangeExec.class)).hasSize(weft ? 1 : 0);
    } catch (TimeoutException | StreamingQueryException | ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  /** The package of Spark's class depends on its version. */
  private static SparkPlan lastPlan(StreamingQuery query) throws ReflectiveOperationException {
    Object execution = query.getClass().getMethod("streamingQuery").invoke(query);
    Object last = execution.getClass().getMethod("lastExecution").invoke(execution);
    return ((QueryExecution) last).executedPlan();
  }
}
