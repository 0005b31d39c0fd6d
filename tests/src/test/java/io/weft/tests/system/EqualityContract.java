package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every query answers as with Spark's own shuffle: on each route, with adaptive execution and
 * without. A subclass sets the way of the blocks.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class EqualityContract {
  @RegisterExtension
  @Order(1)
  final Workspace workspace = new Workspace();

  @RegisterExtension
  @Order(2)
  final WeftCluster cluster;

  EqualityContract(String transport) {
    cluster =
        new WeftCluster(workspace).set("spark.weft.transport", transport).queries(Queries.all());
  }

  /** The metric that grows if blocks go the way of this class. */
  abstract String blocksOfThisWay();

  /** The metric that must not grow. */
  abstract String blocksOfTheOtherWay();

  /** The settings with which all queries run. */
  abstract List<Way> ways();

  /**
   * Settings that an exchange depends on.
   *
   * @param route {@code spark.weft.route}
   * @param adaptive whether adaptive execution is on
   */
  record Way(String route, boolean adaptive) {}

  Stream<Arguments> queries() {
    return ways().stream()
        .flatMap(way -> Queries.all().stream().map(query -> Arguments.of(way, query)));
  }

  @ParameterizedTest(name = "{1}: {0}")
  @MethodSource("queries")
  void answersAsSparkDoes(Way way, Query query) {
    Queries.configure(cluster.session(), way.adaptive());
    cluster.session().conf().set("spark.weft.route", way.route());
    cluster.check(query);
  }

  @ParameterizedTest
  @MethodSource("routes")
  void blocksGoTheRequestedWay(String route) {
    Queries.configure(cluster.session(), true);
    cluster.session().conf().set("spark.weft.route", route);
    long published = cluster.sum("outputsPublished");
    long taken = cluster.sum(blocksOfThisWay());
    long other = cluster.sum(blocksOfTheOtherWay());
    cluster.session().sql("SELECT /*+ REPARTITION(5, k) */ * FROM facts_parquet").collectAsList();
    assertThat(cluster.sum("outputsPublished")).as("map outputs").isGreaterThan(published);
    assertThat(cluster.sum(blocksOfThisWay())).as(blocksOfThisWay()).isGreaterThan(taken);
    assertThat(cluster.sum(blocksOfTheOtherWay())).as(blocksOfTheOtherWay()).isEqualTo(other);
  }

  static List<String> routes() {
    return List.of("auto", "rows", "columns");
  }

  /** The executors are on one host, and the driver reads that from Spark. */
  @Test
  void numbersAreWrittenAsRowsByGeneratedCode() {
    SparkSession session = cluster.session();
    Queries.configure(session, true);
    session.conf().set("spark.weft.route", "auto");
    List<String> checksums =
        Stream.of("enabled", "enableFullRetryOnMismatch")
            .map("spark.sql.shuffle.orderIndependentChecksum."::concat)
            .toList();
    checksums.forEach(key -> session.conf().set(key, "false")); // Spark 4.2: on
    String[] columns =
        IntStream.range(0, 8)
            .mapToObj(i -> "if(id %% 7 = %d, null, id * %d) c%d".formatted(i, i + 1, i))
            .toArray(String[]::new);
    String files = workspace.folder().resolve("numbers").toString();
    Dataset<Row> made = session.range(0, 20_000, 1, 4).selectExpr(columns);
    made.write().parquet(files);
    Dataset<Row> moved = session.read().parquet(files).repartition(5, new Column("c1"));
    try {
      assertThat(texts(moved.collectAsList()))
          .containsExactlyInAnyOrderElementsOf(texts(made.collectAsList()));
      assertThat(((org.apache.spark.sql.classic.Dataset<Row>) moved).queryExecution().toString())
          .contains("its numbers are faster as rows, written by generated code");
    } finally {
      checksums.forEach(session.conf()::unset);
    }
  }

  private static List<String> texts(List<Row> rows) {
    return rows.stream().map(Row::toString).toList();
  }

  @Test
  void enabledFalseLeavesTheSessionToSpark() {
    long published = cluster.sum("outputsPublished");
    cluster.session().conf().set("spark.weft.enabled", "false");
    try {
      Queries.compact().forEach(cluster::check);
      assertThat(cluster.sum("outputsPublished")).as("map outputs").isEqualTo(published);
    } finally {
      cluster.session().conf().unset("spark.weft.enabled");
    }
  }
}
