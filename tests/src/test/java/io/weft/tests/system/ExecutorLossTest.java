package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.KillAtTask;
import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Pause;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.types.DataTypes;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Killed executors: the rows stay right, and the remaining executors delete the dead one's files on
 * the host.
 */
class ExecutorLossTest {
  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 3) AS s, id % 7 AS k FROM RANGE(0, 30000, 1, 8)";

  /** How long tasks take at least in the stage in which an executor dies. */
  private static final int PAUSE_MILLIS = 200;

  /** A shuffle of an RDD instead of rows. */
  private static final String STREAMS = "streams";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.rdd.streams", "true")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  /** Executors that were killed so far. */
  private static final List<ExecutorProcess> VICTIMS = new ArrayList<>();

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns", STREAMS})
  void killedBetweenTwoJobsOverOneShuffle(String route) {
    List<String> expected = expected();
    JavaRDD<String> rows = shuffled(route, false, 0);
    Rows.assertSame("first job", expected, sorted(rows));
    ExecutorProcess victim = CLUSTER.executors().get(0);
    victim.kill();
    VICTIMS.add(victim);
    Rows.assertSame("second job", expected, sorted(rows));
  }

  @ParameterizedTest(name = "after task {1} of stage {0}, route {2}, adaptive {3}")
  @CsvSource({
    "0, 3, rows, false",
    "0, 3, columns, true",
    "1, 1, rows, true",
    "1, 1, columns, false",
    "1, 5, rows, false",
    "1, 5, columns, true",
    "0, 3, streams, false",
    "1, 1, streams, false"
  })
  void killedDuringAJob(int stage, int task, String route, boolean adaptive) {
    List<String> expected = expected();
    try (KillAtTask killer = KillAtTask.arm(CLUSTER, stage, task)) {
      JavaRDD<String> rows = shuffled(route, adaptive, stage == 0 ? PAUSE_MILLIS : 0);
      Rows.assertSame(
          "lost an executor", expected, sorted(Pause.before(rows, stage == 1 ? PAUSE_MILLIS : 0)));
      VICTIMS.add(killer.victim());
      assertThat(killer.diedInStage()).as("the executor died before the end of its stage").isTrue();
    }
  }

  private static JavaRDD<String> shuffled(String route, boolean adaptive, int pauseMillis) {
    Queries.configure(CLUSTER.session(), adaptive);
    CLUSTER.session().udf().register("pause", new Pause(pauseMillis), DataTypes.LongType);
    String sql = SQL.replace("SELECT id", "SELECT pause(id) AS id");
    if (route.equals(STREAMS)) {
      return CLUSTER.session().sql(sql).javaRDD().map(RowText.FUNCTION).repartition(9);
    }
    CLUSTER.session().conf().set("spark.weft.route", route);
    return CLUSTER.session().sql(sql).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
  }

  private static List<String> expected() {
    return CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }

  /**
   * A folder stays as long as a task may read in it, which is until Spark forgets the shuffle. It
   * is deleted when a later shuffle is forgotten, at most every few seconds. The test therefore
   * waits for all folders together.
   */
  @AfterAll
  static void onlyRunningExecutorsHaveFolders() {
    CLUSTER.awaitExecutors();
    Set<String> living =
        CLUSTER.executors().stream().map(ExecutorProcess::id).collect(Collectors.toSet());
    assertThat(VICTIMS)
        .isNotEmpty()
        .extracting(ExecutorProcess::id)
        .doesNotContainAnyElementsOf(living);
    Awaitility.await("folders of the living executors only, without " + VICTIMS)
        .atMost(Duration.ofMinutes(3))
        .pollInterval(Duration.ofSeconds(1))
        .untilAsserted(
            () -> {
              CLUSTER.session().sql(SQL).repartition(2, col("id")).count();
              System.gc();
              assertThat(CLUSTER.executorFolders())
                  .as("folders of %s", living)
                  .hasSize(WeftCluster.EXECUTORS)
                  .allMatch(folder -> living.contains(executorOf(folder)));
            });
  }

  /** The folder's name begins with the executor's id. */
  private static String executorOf(Path folder) {
    String name = folder.getFileName().toString();
    return name.substring(0, name.lastIndexOf('-'));
  }
}
