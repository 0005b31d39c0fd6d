package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Rows;
import io.weft.tests.support.Signals;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.JavaRDD;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Executors that are suspended or decommissioned, as executors of other hosts see them. */
class FaultsOverTcpTest {
  /** The first map task has no rows, the last one has some. */
  private static final String SQL =
      "SELECT id, REPEAT('weft', 20) AS s FROM RANGE(0, 40000, 1, 4) WHERE id >= 15000";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .migrating()
          .set("spark.weft.transport", "tcp")
          .set("spark.weft.fetch.timeout", "10s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  @Test
  void aStoppedExecutorIsGivenUpAndMayResumeLater() throws Exception {
    stopAndResume("rows");
  }

  @Test
  @Tag("slow")
  void aStoppedExecutorIsGivenUpAndMayResumeLaterByColumns() throws Exception {
    stopAndResume("columns");
  }

  private static void stopAndResume(String route) throws Exception {
    JavaRDD<String> rows = shuffled(route);
    ExecutorProcess stopped = writerOf(rows);
    CompletableFuture<List<String>> second;
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Signals.stop(stopped.pid());
      try {
        second = CompletableFuture.supplyAsync(() -> sorted(rows));
        Awaitility.await("a fetch from " + stopped + " that is given up")
            .atMost(Duration.ofMinutes(3))
            .until(() -> log.fetchFailures().contains(stopped.id()));
      } finally {
        Signals.resume(stopped.pid());
      }
    }
    Rows.assertSame("second job", expected(), second.get(3, TimeUnit.MINUTES));
    Rows.assertSame("third job", expected(), sorted(shuffled(route)));
    assertThat(CLUSTER.executors()).as("executors that still run").contains(stopped);
  }

  /** Runs the first job; returns the executor of the last map task, whose blocks are read. */
  private static ExecutorProcess writerOf(JavaRDD<String> rows) {
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("first job", expected(), sorted(rows));
      return CLUSTER.executor(log.executorOfMapTask(3));
    }
  }

  @Test
  void whatADecommissionedExecutorWroteIsReadFromItsHeir() {
    decommission("columns");
  }

  @Test
  @Tag("slow")
  void whatADecommissionedExecutorWroteIsReadFromItsHeirByRows() {
    decommission("rows");
  }

  private static void decommission(String route) {
    JavaRDD<String> rows = shuffled(route);
    CLUSTER.decommission(List.of(writerOf(rows)));
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("second job", expected(), sorted(rows));
      assertThat(log.mapTasks()).as("map tasks of the second job").isZero();
      assertThat(log.fetchFailures()).isEmpty();
    }
  }

  private static JavaRDD<String> shuffled(String route) {
    configure(route);
    return CLUSTER.session().sql(SQL).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
  }

  private static void configure(String route) {
    Queries.configure(CLUSTER.session(), false);
    CLUSTER.session().conf().set("spark.weft.route", route);
  }

  private static List<String> expected() {
    return CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
