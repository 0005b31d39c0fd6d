package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.spark_partition_id;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Edge cases of sizes, with segments of one megabyte, on the routes of rows and of columns. */
class CornersTest {
  private static final String REMOVE_AFTER_QUERY =
      "spark.sql.classic.shuffleDependency.fileCleanup.enabled";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.memory.segmentSize", "1m")
          .set("spark.weft.memory.size", "256m");

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void noRows(String route) {
    Dataset<Row> none = sql(route, "SELECT * FROM nothing");
    assertThat(none.repartition(4, col("k")).collectAsList()).isEmpty();
    assertThat(none.repartition(4).collectAsList()).isEmpty();
    assertThat(none.repartitionByRange(4, col("k")).collectAsList()).isEmpty();
    assertThat(none.repartition(1).collectAsList()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void noColumns(String route) {
    Dataset<Row> empty = sql(route, "SELECT * FROM facts").select();
    assertThat(empty.repartition(5).collectAsList()).hasSize(3000);
    assertThat(empty.repartition(1).collectAsList()).hasSize(3000);
    assertThat(sql(route, "SELECT * FROM facts_parquet").select().repartition(5).count())
        .isEqualTo(3000);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void onePartition(String route) {
    Dataset<Row> all = sql(route, "SELECT * FROM facts");
    check(all.repartition(1).repartition(1, col("k")), all);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void fiveThousandPartitions(String route) {
    Dataset<Row> spread =
        sql(route, "SELECT id, s, k FROM facts_parquet").repartition(5000, col("id"));
    // Each task reads a hundred partitions, one after the other: a task for each would cost more.
    Dataset<Row> numbered = spread.select(spark_partition_id(), col("id")).coalesce(50);
    List<String> ids = RowText.collect(numbered);
    List<String> expected =
        RowText.collect(
            CLUSTER.session().sql("SELECT CAST(PMOD(HASH(id), 5000) AS INT), id FROM facts"));
    Rows.assertSame("partitions", sorted(expected), sorted(ids));
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void rowsLargerThanASegment(String route) {
    Dataset<Row> huge =
        sql(
            route,
            "SELECT id, REPEAT(CAST(id AS STRING), 3000000) AS s, ARRAY_REPEAT(id, 1000) AS a FROM"
                + " RANGE(10, 16, 1, 3)");
    Dataset<Row> moved = huge.repartition(4, col("id"));
    assertThat(RowText.collect(moved.selectExpr("id", "LENGTH(s)", "MD5(s)", "SIZE(a)")))
        .containsExactlyInAnyOrderElementsOf(
            RowText.collect(huge.selectExpr("id", "LENGTH(s)", "MD5(s)", "SIZE(a)")));
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void manyColumns(String route) {
    StringBuilder sql = new StringBuilder("SELECT id");
    for (int column = 0; column < 300; column++) {
      String value = column % 3 == 0 ? "id * " + column : column % 3 == 1 ? "STRING(id)" : "NULL";
      sql.append(", IF((id + ")
          .append(column)
          .append(") % 4 = 0, NULL, ")
          .append(value)
          .append(") AS c")
          .append(column);
    }
    Dataset<Row> wide = sql(route, sql.append(" FROM RANGE(0, 200, 1, 2)").toString());
    check(wide.repartition(3, col("id")), wide);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void moreThanAllSegmentsTogether(String route) {
    String sql =
        "SELECT id, XXHASH64(id) AS h, REPEAT('weft', 10) AS s FROM RANGE(0, 2000000, 1, 4)";
    Row sums =
        sql(route, sql)
            .repartition(7, col("h"))
            .selectExpr("COUNT(*)", "SUM(id)", "BIT_XOR(h)", "SUM(LENGTH(s))")
            .head();
    Row expected =
        CLUSTER
            .session()
            .sql(sql)
            .selectExpr("COUNT(*)", "SUM(id)", "BIT_XOR(h)", "SUM(LENGTH(s))")
            .head();
    assertThat(RowText.of(sums)).isEqualTo(RowText.of(expected));
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void resultsAreReadAgainAfterSparkHasRemovedTheirShuffle(String route) throws Exception {
    CLUSTER.session().conf().set(REMOVE_AFTER_QUERY, true);
    try {
      Dataset<Row> all = sql(route, "SELECT id, s, k FROM facts_parquet");
      Dataset<Row> moved = all.repartition(4, col("id"));
      check(moved, all);
      // The shuffle is still referenced, so only Spark's removal after the query frees it.
      CLUSTER.awaitNothingUsed();
      check(moved, all);
      CLUSTER.awaitNothingUsed();
      check(moved, all);
      CLUSTER.context().listenerBus().waitUntilEmpty();
      WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
      assertThat(manager.failures().count()).as("failures of Weft").isZero();
    } finally {
      CLUSTER.session().conf().unset(REMOVE_AFTER_QUERY);
    }
  }

  private static Dataset<Row> sql(String route, String sql) {
    Queries.configure(CLUSTER.session(), true);
    CLUSTER.session().conf().set("spark.weft.route", route);
    return CLUSTER.session().sql(sql);
  }

  private static void check(Dataset<Row> moved, Dataset<Row> original) {
    Rows.assertSame(
        "moved rows", sorted(RowText.collect(original)), sorted(RowText.collect(moved)));
  }

  private static List<String> sorted(List<String> rows) {
    return rows.stream().sorted().toList();
  }
}
