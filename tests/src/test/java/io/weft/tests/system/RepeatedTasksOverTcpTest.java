package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;

import io.weft.tests.support.HeldTask;
import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.RowText;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Map tasks that run twice, as executors of different hosts see it: a speculative attempt that
 * wins, and an executor that is killed with what it wrote. Rows arrive once.
 */
class RepeatedTasksOverTcpTest {
  private static final int ROWS = 40000;
  private static final String FROM = " FROM RANGE(0, " + ROWS + ", 1, 4)";
  private static final String SELECT = "SELECT id, REPEAT('weft', 20) AS s" + FROM;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.transport", "tcp")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10")
          .set("spark.speculation", "true")
          .set("spark.speculation.quantile", "0.5")
          .set("spark.speculation.minTaskRuntime", "200ms");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void theAttemptThatLosesLeavesNothing(String route) throws Exception {
    SparkSession session = session(route);
    try (HeldTask held = HeldTask.register(session, WORKSPACE, ROWS / 4 - 10).hold()) {
      String sql =
          "SELECT /*+ REPARTITION(5, id) */ hold(id) AS id, REPEAT('weft', 20) AS s" + FROM;
      CompletableFuture<List<String>> rows =
          CompletableFuture.supplyAsync(() -> RowText.collect(session.sql(sql)));
      held.awaitHeld();
      Rows.assertSame(
          "rows with an attempt that still runs",
          expected(),
          rows.get(2, TimeUnit.MINUTES).stream().sorted().toList());
    }
    CLUSTER.awaitNothingUsed();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void whatAKilledExecutorWroteIsMadeAgain(String route) {
    JavaRDD<String> rows =
        session(route).sql(SELECT).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
    Rows.assertSame("first job", expected(), rows.collect().stream().sorted().toList());
    CLUSTER.executors().get(0).kill();
    Rows.assertSame("second job", expected(), rows.collect().stream().sorted().toList());
  }

  private static SparkSession session(String route) {
    CLUSTER.session().conf().set("spark.weft.route", route);
    return CLUSTER.session();
  }

  private static List<String> expected() {
    return CLUSTER.session().sql(SELECT).collectAsList().stream()
        .map(RowText::of)
        .sorted()
        .toList();
  }
}
