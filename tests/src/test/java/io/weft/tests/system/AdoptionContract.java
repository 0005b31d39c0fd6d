package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.HeldTask;
import io.weft.tests.support.KillAtTask;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Pause;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.JavaRDD;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * An executor is killed, and the other one on its host adopts its map outputs: no map task that has
 * ended before runs again, and the rows stay right. A subclass sets where the blocks are and how
 * they are read.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class AdoptionContract {
  private static final int MAP_TASKS = 8;

  /** How long tasks take at least in the stage in which an executor dies. */
  private static final int PAUSE_MILLIS = 200;

  /** A shuffle of an RDD instead of rows. */
  private static final String STREAMS = "streams";

  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 12) AS s, id % 7 AS k FROM RANGE(0, 30000, 1, 8)";

  @RegisterExtension
  @Order(1)
  final Workspace workspace = new Workspace();

  @RegisterExtension
  @Order(2)
  final WeftCluster cluster =
      new WeftCluster(workspace)
          .set("spark.weft.adopt.enabled", "true")
          .set("spark.weft.rdd.streams", "true")
          .set("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  /**
   * How often in a row the executor with the outputs dies. After the second death, the next one
   * takes over what its predecessor wrote and what that had taken over.
   */
  int deaths() {
    return 2;
  }

  @BeforeEach
  void allExecutorsAreThere() {
    cluster.awaitExecutors();
  }

  @AfterEach
  void nothingIsLeft() {
    cluster.awaitExecutors();
    cluster.awaitNothingUsed();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns", STREAMS})
  void noMapTaskRunsAgainAfterADeathBetweenTwoStages(String route) {
    List<String> expected = expected(SQL);
    JavaRDD<String> rows = shuffled(route, SQL, false);
    Rows.assertSame("before", expected, sorted(rows));
    for (int death = 1; death <= deaths(); death++) {
      ExecutorProcess victim = cluster.executors().get(0);
      victim.kill();
      MapOutputs.awaitElsewhere(victim, MAP_TASKS);
      try (TaskLog log = TaskLog.open(cluster.context())) {
        Rows.assertSame("after death " + death, expected, sorted(rows));
        assertThat(log.mapTasks()).as("map tasks after death " + death).isZero();
        assertThat(log.fetchFailures()).as("after death " + death).isEmpty();
      }
      cluster.awaitExecutors();
    }
  }

  /** The tasks are held until the outputs are adopted, because Spark does not wait for that. */
  @ParameterizedTest
  @ValueSource(strings = "columns")
  void noMapTaskRunsAgainAfterADeathInTheReduceStage(String route) throws Exception {
    List<String> expected = expected(SQL);
    Queries.configure(cluster.session(), false);
    cluster.session().conf().set("spark.weft.route", route);
    try (HeldTask first = HeldTask.register(cluster.session(), workspace, 100, "holdFirst");
        HeldTask second = HeldTask.register(cluster.session(), workspace, 29_900, "holdSecond");
        TaskLog log = TaskLog.open(cluster.context())) {
      JavaRDD<String> rows =
          cluster
              .session()
              .sql(SQL)
              .repartitionByRange(2, col("id"))
              .selectExpr("holdFirst(holdSecond(id)) AS id", "s", "k")
              .javaRDD()
              .map(RowText.FUNCTION);
      first.hold();
      second.hold();
      CompletableFuture<List<String>> collected = CompletableFuture.supplyAsync(() -> sorted(rows));
      ExecutorProcess victim = cluster.executor(log.executorOf(first.awaitHeld()));
      second.awaitHeld();
      victim.kill();
      MapOutputs.awaitElsewhere(victim, MAP_TASKS);
      first.release();
      second.release();
      Rows.assertSame("lost an executor", expected, collected.get(3, TimeUnit.MINUTES));
      assertThat(log.mapTasks()).as("map tasks").isEqualTo(MAP_TASKS);
    }
  }

  /** Tasks may look for outputs before they are adopted. Then Spark may repeat map tasks. */
  @ParameterizedTest(name = "after task {1} of the reduce stage, route {0}, adaptive {2}")
  @CsvSource(STREAMS + ", 3, false")
  void rowsStayRightIfTasksDoNotWaitForTheAdoption(String route, int task, boolean adaptive) {
    List<String> expected = expected(SQL);
    try (KillAtTask killer = KillAtTask.arm(cluster, 1, task);
        TaskLog log = TaskLog.open(cluster.context())) {
      JavaRDD<String> rows = Pause.before(shuffled(route, SQL, adaptive), PAUSE_MILLIS);
      Rows.assertSame("lost an executor", expected, sorted(rows));
      assertThat(killer.diedInStage()).as("the executor died before the end of its stage").isTrue();
      if (log.fetchFailures().isEmpty()) {
        assertThat(log.mapTasks()).as("map tasks").isEqualTo(MAP_TASKS);
      }
    }
  }

  /** What the held task has written is not published. An earlier shuffle is adopted. */
  @ParameterizedTest
  @ValueSource(strings = "rows")
  void halfOfAnOutputIsNotAdopted(String route) throws Exception {
    List<String> expected = expected(SQL);
    JavaRDD<String> before = shuffled(route, SQL, false);
    Rows.assertSame("an earlier shuffle", expected, sorted(before));
    int earlier = MapOutputs.lastShuffle();
    try (HeldTask held = HeldTask.register(cluster.session(), workspace, 20_000);
        TaskLog log = TaskLog.open(cluster.context())) {
      String sql = SQL.replace("SELECT id", "SELECT hold(id) AS id");
      JavaRDD<String> rows = shuffled(route, sql, false);
      held.hold();
      CompletableFuture<List<String>> collected = CompletableFuture.supplyAsync(() -> sorted(rows));
      ExecutorProcess victim = cluster.executor(log.executorOf(held.awaitHeld()));
      victim.kill();
      held.release();
      Rows.assertSame("killed while it wrote", expected, collected.get(3, TimeUnit.MINUTES));
      MapOutputs.awaitElsewhere(earlier, victim, MAP_TASKS);
    }
    try (TaskLog log = TaskLog.open(cluster.context())) {
      Rows.assertSame("the earlier shuffle", expected, sorted(before));
      assertThat(log.mapTasks()).as("map tasks of the earlier shuffle").isZero();
    }
  }

  private JavaRDD<String> shuffled(String route, String sql, boolean adaptive) {
    Queries.configure(cluster.session(), adaptive);
    if (route.equals(STREAMS)) {
      return cluster.session().sql(sql).javaRDD().map(RowText.FUNCTION).repartition(9);
    }
    cluster.session().conf().set("spark.weft.route", route);
    return cluster.session().sql(sql).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
  }

  private List<String> expected(String sql) {
    return cluster.session().sql(sql).collectAsList().stream().map(RowText::of).sorted().toList();
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
