package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;

import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.RowText;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Map tasks that run twice because the executor with their output was killed, as executors of
 * different hosts see it. Each row arrives once.
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
          .set("spark.stage.maxConsecutiveAttempts", "10");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
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
