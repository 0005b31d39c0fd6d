package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.KillAtTask;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.util.List;
import java.util.Random;
import org.apache.spark.api.java.JavaRDD;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Executors are killed at random moments of random jobs, {@code -Dweft.adoption.rounds} times. The
 * rows stay right, and between two jobs no map task runs again. {@code -Dweft.adoption.seed}
 * repeats a run.
 */
class AdoptionRoundsTest {
  private static final int ROUNDS = Integer.getInteger("weft.adoption.rounds", 5);
  private static final long SEED = Long.getLong("weft.adoption.seed", System.nanoTime());
  private static final List<String> ROUTES = List.of("rows", "columns", "streams");

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.adopt.enabled", "true")
          .set("spark.weft.rdd.streams", "true")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  private final Random random = new Random(SEED);

  /** A job of a round. */
  private record Job(String route, int rows, int maps, int partitions, boolean adaptive) {
    String sql() {
      return "SELECT id, REPEAT(STRING(id), 9) AS s FROM RANGE(0, %d, 1, %d)".formatted(rows, maps);
    }

    JavaRDD<String> shuffled() {
      Queries.configure(CLUSTER.session(), adaptive);
      if (route.equals("streams")) {
        return CLUSTER.session().sql(sql()).javaRDD().map(RowText.FUNCTION).repartition(partitions);
      }
      CLUSTER.session().conf().set("spark.weft.route", route);
      return CLUSTER
          .session()
          .sql(sql())
          .repartition(partitions, col("id"))
          .javaRDD()
          .map(RowText.FUNCTION);
    }

    List<String> expected() {
      return CLUSTER.session().sql(sql()).collectAsList().stream()
          .map(RowText::of)
          .sorted()
          .toList();
    }
  }

  @Test
  void rowsStayRightAndNoOutputIsComputedTwice() {
    for (int round = 1; round <= ROUNDS; round++) {
      CLUSTER.awaitExecutors();
      Job job =
          new Job(
              ROUTES.get(random.nextInt(ROUTES.size())),
              1 + random.nextInt(20_000),
              2 + random.nextInt(10),
              2 + random.nextInt(10),
              random.nextBoolean());
      String name = "round " + round + " of seed " + SEED + ", " + job;
      System.out.println(name);
      switch (random.nextInt(3)) {
        case 0 -> betweenTwoJobs(name, job);
        case 1 -> duringAStage(name, job, 0, 1 + random.nextInt(job.maps()));
        default -> duringAStage(name, job, 1, 1 + random.nextInt(job.partitions()));
      }
    }
    CLUSTER.awaitExecutors();
    CLUSTER.awaitNothingUsed();
  }

  private void betweenTwoJobs(String name, Job job) {
    List<String> expected = job.expected();
    JavaRDD<String> rows = job.shuffled();
    Rows.assertSame(name, expected, sorted(rows));
    List<ExecutorProcess> executors = CLUSTER.executors();
    ExecutorProcess victim = executors.get(random.nextInt(executors.size()));
    victim.kill();
    MapOutputs.awaitElsewhere(victim, job.maps());
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame(name, expected, sorted(rows));
      assertThat(log.mapTasks()).as(name).isZero();
    }
  }

  /**
   * Spark itself repeats tasks of a stage that is not complete. It may also repeat map tasks if a
   * task looks for outputs before they are adopted.
   */
  private static void duringAStage(String name, Job job, int stage, int task) {
    List<String> expected = job.expected();
    try (KillAtTask killer = KillAtTask.arm(CLUSTER, stage, task);
        TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame(name, expected, sorted(job.shuffled()));
      assertThat(killer.victim()).as(name).isNotNull();
      if (stage == 1 && log.fetchFailures().isEmpty()) {
        assertThat(log.mapTasks()).as(name).isEqualTo(job.maps());
      }
    }
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
