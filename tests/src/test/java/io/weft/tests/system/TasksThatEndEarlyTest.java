package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.tests.support.HeldTask;
import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.Dependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Map tasks that end in the middle of their rows: killed, failed or cancelled. Their partial output
 * must be freed. Also reduce tasks whose shuffle ends before them.
 */
class TasksThatEndEarlyTest {
  private static final int ROWS = 40000;
  private static final String SELECT =
      "SELECT /*+ REPARTITION(5, id) */ hold(id) AS id, REPEAT('weft', 20) AS s";
  private static final String FROM = " FROM RANGE(0, " + ROWS + ", 1, 4)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE).set("spark.weft.memory.segmentSize", "1m");

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void aKilledTaskIsRunAgainAndItsMemoryFreed(String route) throws Exception {
    try (HeldTask held = register(route).hold()) {
      CompletableFuture<List<String>> rows =
          CompletableFuture.supplyAsync(TasksThatEndEarlyTest::run);
      long attempt = held.awaitHeld();
      assertThat(CLUSTER.context().killTaskAttempt(attempt, true, "killed by the test")).isTrue();
      held.release();
      Rows.assertSame("rows after a killed task", expected(), rows.get(3, TimeUnit.MINUTES));
    }
    CLUSTER.awaitNothingUsed();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void aFailedJobLeavesNothing(String route) {
    try (HeldTask held = register(route).fail()) {
      assertThatThrownBy(TasksThatEndEarlyTest::run)
          .hasStackTraceContaining("failed, as the test asked");
    }
    CLUSTER.awaitNothingUsed();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void aCancelledJobLeavesNothing(String route) {
    try (HeldTask held = register(route).hold()) {
      CompletableFuture<List<String>> rows =
          CompletableFuture.supplyAsync(TasksThatEndEarlyTest::run);
      held.awaitHeld();
      CLUSTER.context().cancelAllJobs();
      assertThatThrownBy(() -> rows.get(3, TimeUnit.MINUTES)).hasStackTraceContaining("cancelled");
    }
    CLUSTER.awaitNothingUsed();
  }

  /** One map task and one reduce task, so that all blocks have been looked up already. */
  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void blocksThatAreReadOutliveTheirShuffle(String route) throws Exception {
    try (HeldTask held = register(route).hold()) {
      unregisterWhileRead(held);
    }
    CLUSTER.awaitNothingUsed();
  }

  private static void unregisterWhileRead(HeldTask held) throws Exception {
    Queries.configure(CLUSTER.session(), false);
    String sql = "SELECT id, REPEAT('weft', 20) AS s FROM RANGE(0, " + ROWS + ", 1, 1)";
    Dataset<Row> data =
        CLUSTER.session().sql(sql).repartition(1, col("id")).selectExpr("hold(id) AS id", "s");
    JavaRDD<String> rows = data.javaRDD().map(RowText.FUNCTION);
    List<String> expected = RowText.collect(CLUSTER.session().sql(sql));
    CompletableFuture<List<String>> read = CompletableFuture.supplyAsync(rows::collect);
    held.awaitHeld();
    CLUSTER.context().cleaner().get().doCleanupShuffle(shuffleOf(rows.rdd()), true);
    held.release();
    Rows.assertSame(
        "rows of a shuffle that was unregistered",
        expected.stream().sorted().toList(),
        read.get(3, TimeUnit.MINUTES).stream().sorted().toList());
  }

  /** Finds the only shuffle of an RDD. */
  private static int shuffleOf(RDD<?> rdd) {
    Dependency<?> dependency = rdd.dependencies().head();
    return dependency instanceof ShuffleDependency<?, ?, ?> shuffle
        ? shuffle.shuffleId()
        : shuffleOf(dependency.rdd());
  }

  private static HeldTask register(String route) {
    SparkSession session = CLUSTER.session();
    session.conf().set("spark.weft.route", route);
    return HeldTask.register(session, WORKSPACE, ROWS / 4 - 10);
  }

  private static List<String> run() {
    return RowText.collect(CLUSTER.session().sql(SELECT + FROM)).stream().sorted().toList();
  }

  private static List<String> expected() {
    String sql = "SELECT id, REPEAT('weft', 20) AS s" + FROM;
    return RowText.collect(CLUSTER.session().sql(sql)).stream().sorted().toList();
  }
}
