package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.HeldTask;
import io.weft.tests.support.KillAtTask;
import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.spark.SparkException;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.SparkSession;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A map stage that deals rows to partitions without keys, and loses an executor. It receives rows
 * from a shuffle, in any order. By default, repeated tasks deal the same rows to each partition as
 * before. Without {@code spark.sql.execution.sortBeforeRepartition} they deal others: then each row
 * arrives once, or the job fails as it does with Spark's shuffle.
 */
class RepeatedRepartitionTest {
  private static final int ROWS = 25_000;
  private static final int FIRST_TASKS = 6;
  private static final int DEALING_TASKS = 8;
  private static final int DEALT_TASKS = 7;
  private static final int LAST_TASKS = 9;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          // In place, the output of a killed executor is still read on its host, and no harm is
          // done.
          .set("spark.weft.transport", "tcp")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10")
          // The plan's own information must suffice, even if Spark could detect the change by
          // checksums.
          .set("spark.sql.shuffle.orderIndependentChecksum.enabled", "false")
          .set("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false")
          // Otherwise the optimizer keeps only the last of several repartitions.
          .set(
              "spark.sql.optimizer.excludedRules",
              "org.apache.spark.sql.catalyst.optimizer.CollapseRepartition");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  /** The rows that the ended tasks read must not be dealt differently. */
  @ParameterizedTest(name = "{0}")
  @ValueSource(strings = {"rows", "columns"})
  void allTasksThatDealAreRunAgain(String route) throws Exception {
    dealTwice(
        route,
        false,
        repeated ->
            assertThat(repeated)
                .anyMatch(stage -> stage.numTasks() == DEALING_TASKS)
                .anyMatch(stage -> stage.numTasks() == DEALT_TASKS));
  }

  /** The other tasks read rows that are dealt again, by the lost tasks only. */
  @ParameterizedTest(name = "{0}")
  @ValueSource(strings = {"rows", "columns"})
  void lostTasksDealTheSameRowsAgain(String route) throws Exception {
    dealTwice(
        route,
        true,
        repeated ->
            assertThat(repeated)
                .isNotEmpty()
                .noneMatch(stage -> stage.numTasks() == DEALING_TASKS));
  }

  /** Kills an executor when two tasks that read dealt rows have ended. */
  private static void dealTwice(
      String route, boolean repeatable, Consumer<List<StageInfo>> checkRepeatedStages)
      throws Exception {
    List<String> expected = expected();
    Stages stages = new Stages();
    CLUSTER.context().addSparkListener(stages);
    // A third one is held on the other executor, so that the job does not end before the kill.
    try (HeldTask held = HeldTask.register(CLUSTER.session(), WORKSPACE, 0).hold();
        KillAtTask killer = KillAtTask.arm(CLUSTER, 2, 2)) {
      CompletableFuture<List<String>> rows =
          CompletableFuture.supplyAsync(
              () -> collect(route, repeatable, "id + hold(id * 0) AS id"));
      held.awaitHeld();
      assertThat(killer.victim()).isNotNull();
      held.release();
      Rows.assertSame("dealt twice", expected, rows.get(3, TimeUnit.MINUTES));
      Awaitility.await("repeated stages")
          .atMost(Duration.ofMinutes(3))
          .untilAsserted(() -> checkRepeatedStages.accept(stages.repeated));
    } finally {
      CLUSTER.context().removeSparkListener(stages);
    }
  }

  /** Rows that the driver has received cannot be revoked. */
  @Tag("slow")
  @ParameterizedTest(name = "{0}")
  @ValueSource(strings = {"rows", "columns"})
  void aJobWhoseResultsCannotBeTakenBackFails(String route) {
    Optional<List<String>> rows;
    try (KillAtTask killer = KillAtTask.arm(CLUSTER, 3, 1)) {
      rows = collectOrFail(route);
      assertThat(killer.victim()).isNotNull();
    }
    rows.ifPresent(all -> Rows.assertSame("nothing of it was lost", expected(), all));
    CLUSTER.awaitExecutors();
    Rows.assertSame("the next job", expected(), collect(route, false, "id"));
  }

  private static Optional<List<String>> collectOrFail(String route) {
    try {
      return Optional.of(collect(route, false, "id"));
    } catch (Exception e) {
      assertThat(e).isInstanceOf(SparkException.class).hasMessageContaining("indeterminate output");
      return Optional.empty();
    }
  }

  /** Computes the id with this expression, in the tasks that read dealt rows. */
  private static List<String> collect(String route, boolean repeatable, String id) {
    SparkSession session = CLUSTER.session();
    Queries.configure(session, false);
    session.conf().set("spark.weft.route", route);
    session.conf().set("spark.sql.execution.sortBeforeRepartition", repeatable);
    return session
        .range(0, ROWS, 1, FIRST_TASKS)
        .selectExpr("id", "id % 101 AS k")
        .repartition(DEALING_TASKS, col("k"))
        .repartition(DEALT_TASKS)
        .selectExpr(id, "k")
        .repartition(LAST_TASKS, col("id"))
        .javaRDD()
        .map(RowText.FUNCTION)
        .collect()
        .stream()
        .sorted()
        .toList();
  }

  private static List<String> expected() {
    return RowText.collect(CLUSTER.session().range(0, ROWS, 1, 1).selectExpr("id", "id % 101 AS k"))
        .stream()
        .sorted()
        .toList();
  }

  /** Counts attempts of stages except the first ones. */
  private static final class Stages extends SparkListener {
    private final List<StageInfo> repeated = new CopyOnWriteArrayList<>();

    @Override
    public void onStageSubmitted(SparkListenerStageSubmitted submitted) {
      if (submitted.stageInfo().attemptNumber() > 0) {
        repeated.add(submitted.stageInfo());
      }
    }
  }
}
