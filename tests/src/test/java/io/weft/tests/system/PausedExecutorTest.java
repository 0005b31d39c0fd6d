package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Rows;
import io.weft.tests.support.Signals;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.time.Duration;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * An executor stops for so long that Spark declares it dead, and continues then. While it lives its
 * outputs are not adopted: Spark computes them again, and the rows stay right before and after.
 */
class PausedExecutorTest {
  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 12) AS s FROM RANGE(0, 30000, 1, 8)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.adopt.enabled", "true")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.executor.heartbeatInterval", "1s")
          .set("spark.network.timeout", "8s")
          .set("spark.network.timeoutInterval", "1s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void aPausedExecutorIsFenced(String route) {
    CLUSTER.awaitExecutors();
    List<String> expected = expected();
    JavaRDD<String> rows = shuffled(route);
    Rows.assertSame("before", expected, sorted(rows));
    ExecutorProcess paused = CLUSTER.executors().get(0);
    Signals.stop(paused.pid());
    try {
      awaitRemoval(paused);
      Rows.assertSame("while it is paused", expected, sorted(rows));
      assertThat(CLUSTER.executorFolders())
          .as("the folder of a process that lives stays")
          .anyMatch(folder -> folder.getFileName().toString().startsWith(paused.id() + "-"));
    } finally {
      Signals.resume(paused.pid());
    }
    Rows.assertSame("when it continues", expected, sorted(rows));
    paused.awaitEnd(Duration.ofMinutes(3));
    Rows.assertSame("after its end", expected, sorted(rows));
  }

  @AfterEach
  void nothingIsLeft() {
    CLUSTER.awaitExecutors();
    CLUSTER.awaitNothingUsed();
  }

  private static void awaitRemoval(ExecutorProcess paused) {
    Awaitility.await("Spark's removal of " + paused)
        .atMost(Duration.ofMinutes(3))
        .until(() -> !CLUSTER.known().contains(paused.id()));
  }

  private static JavaRDD<String> shuffled(String route) {
    Queries.configure(CLUSTER.session(), false);
    CLUSTER.session().conf().set("spark.weft.route", route);
    return CLUSTER.session().sql(SQL).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
  }

  private static List<String> expected() {
    return CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
