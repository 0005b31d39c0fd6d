package io.weft.spark.shuffle;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.LocalSpark;
import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The same query through Weft's rows route and through Spark's sort shuffle. */
class RowsRouteTest {
  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark =
        LocalSpark.start(
            Map.of(
                "spark.weft.memory.segmentSize", "1m",
                "spark.sql.adaptive.enabled", "false"));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @Test
  void everyTypeAndNulls() {
    spark.assertSameRows(session -> everyType(session, 2000).repartition(7, col("id")));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "select k, count(*), sum(v), max(s) from t group by k",
        "select * from t order by v, k limit 100",
        "select a.k, a.v, b.s from t a join t b on a.k = b.k and a.v < b.v",
        "select k, v, row_number() over (partition by k order by v, s) n from t",
        "select distinct s from t",
        "select k, sort_array(collect_list(v)) from t group by k",
        "select k, v from t union all select k, v from t distribute by k",
        "select count(*) from t"
      })
  void queries(String query) {
    spark
        .session()
        .range(0, 3000, 1, 4)
        .selectExpr("id % 37 k", "id * 7 % 1009 v", "concat('s', id % 91) s")
        .createOrReplaceTempView("t");
    spark.session().conf().set("spark.sql.autoBroadcastJoinThreshold", "-1");
    spark.assertSameRows(session -> session.sql(query));
  }

  @ParameterizedTest
  @ValueSource(strings = {"hash", "range", "single"})
  void partitionsAreThoseOfSpark(String partitioning) {
    spark.assertSameRows(
        session -> {
          Dataset<Row> rows = session.range(0, 1000, 1, 3).selectExpr("id", "id * 3 % 11 k");
          return switch (partitioning) {
            case "hash" -> rows.repartition(6, col("k"));
            case "range" -> rows.repartitionByRange(6, col("id"));
            default -> rows.repartition(1);
          };
        });
  }

  @Test
  void noRows() {
    Dataset<Row> none = spark.session().range(0).selectExpr("id").repartition(4, col("id"));
    assertThat(none.collectAsList()).isEmpty();
  }

  @Test
  void oneRow() {
    spark.assertSameRows(session -> session.range(1).selectExpr("id").repartition(9, col("id")));
  }

  @Test
  void rowsWithoutColumns() {
    long rows =
        spark.withWeft(
            session -> session.range(0, 1000, 1, 3).select().repartition(4).toJavaRDD().count());
    assertThat(rows).isEqualTo(1000);
  }

  @Test
  void rowsLargerThanAChunkAndThanASegment() {
    spark.assertSameRows(
        session ->
            session
                .range(0, 12, 1, 2)
                .selectExpr("id", "repeat(chr(65 + id), int(pow(4, id))) s")
                .selectExpr("id", "length(s) l", "if(id < 9, s, md5(s)) s", "repeat(s, 1) big")
                .repartition(3, col("id"))
                .selectExpr("id", "l", "s", "length(big) bigLength", "md5(big) big"));
  }

  @Test
  void fiveThousandPartitionsMostOfThemEmpty() {
    // Each task reads a hundred partitions, one after the other: a task for each would cost more.
    spark.assertSameRows(
        session ->
            session
                .range(0, 2000, 1, 3)
                .selectExpr("id")
                .repartition(5000, col("id"))
                .selectExpr("spark_partition_id() number", "id")
                .coalesce(50));
  }

  @Test
  void chunksFollowTheLastMapOutput() {
    spark.assertSameRows(
        session ->
            session
                .range(0, 40_000, 1, 8)
                .selectExpr("id", "if(id % 5 = 0, 1, id) k", "repeat('x', int(id % 300)) s")
                .repartition(5, col("k")));
  }

  @Test
  void aShuffleReadTwiceAndInPart() {
    Dataset<Row> rows =
        spark.session().range(0, 5000, 1, 3).selectExpr("id").repartition(4, col("id"));
    long local = LocalSpark.count(ExchangeCounter.LOCAL_BYTES);
    assertThat(rows.limit(3).collectAsList()).hasSize(3);
    var rdd = rows.toJavaRDD();
    assertThat(rdd.count()).isEqualTo(5000);
    assertThat(rdd.count()).isEqualTo(5000);
    assertThat(rdd.take(5)).hasSize(5);
    assertThat(LocalSpark.count(ExchangeCounter.LOCAL_BYTES)).isGreaterThan(local);
  }

  @Test
  void adaptiveExecutionCoalescesAndSplits() {
    spark.session().conf().set("spark.sql.adaptive.enabled", "true");
    try {
      spark.assertSameRows(
          session ->
              session
                  .range(0, 20_000, 1, 4)
                  .selectExpr("id % 100 k", "id v")
                  .groupBy("k")
                  .sum("v"));
    } finally {
      spark.session().conf().set("spark.sql.adaptive.enabled", "false");
    }
  }

  private static Dataset<Row> everyType(SparkSession session, long rows) {
    String[] columns = {
      "id",
      "cast(id % 2 = 0 as boolean) bool",
      "cast(id % 100 as tinyint) i8",
      "cast(id % 1000 as smallint) i16",
      "cast(id as int) i32",
      "cast(id as float) / 3 f32",
      "cast(id as double) / 7 f64",
      "cast(id as decimal(9,2)) d9",
      "cast(id as decimal(18,4)) d18",
      "cast(id as decimal(38,10)) d38",
      "repeat(concat('ä', id), int(id % 50)) str",
      "cast(concat('b', id) as binary) bin",
      "date_add(date'2020-01-01', int(id % 1000)) date",
      "timestamp_seconds(id) ts",
      "cast(timestamp_seconds(id) as timestamp_ntz) tsntz",
      "make_dt_interval(int(id % 9), 1, 2, 3) dt",
      "make_ym_interval(int(id % 9), 1) ym",
      "array(id, id + 1, null) arr",
      "map(concat('k', id), id, 'n', null) m",
      "struct(id a, concat('x', id) b, array(struct(id c)) c) st",
      "null nothing"
    };
    Dataset<Row> all = session.range(0, rows, 1, 3).selectExpr(columns);
    String[] sparse =
        Arrays.stream(all.columns())
            .map(name -> name.equals("id") ? name : "if(id % 3 = 1, null, " + name + ") " + name)
            .toArray(String[]::new);
    return all.selectExpr(sparse);
  }
}
