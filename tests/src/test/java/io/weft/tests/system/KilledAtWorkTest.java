package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.HeldTask;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.JavaRDD;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Executors that are killed in the middle of a task that writes, of one that reads, and while
 * another executor reads from them. A task is held at its first row until the kill.
 */
class KilledAtWorkTest {
  private static final String SQL =
      "SELECT id, REPEAT('weft', 80) AS s FROM RANGE(0, 40000, 1, 12)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  /**
   * A task that has read one row has requested only a part of the others, even if a single map task
   * wrote all rows of the other executor: its block has several chunks, and one chunk is requested
   * at a time.
   */
  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.transport", "tcp")
          .set("spark.weft.batch.rows", "100")
          .set("spark.weft.fetch.requestSize", "8k")
          .set("spark.weft.fetch.maxBytesInFlight", "8k")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  @Test
  void killedWhileItWrites() throws Exception {
    String held = SQL.replace("SELECT id", "SELECT id + hold(id * 0) AS id");
    killAtRow(() -> shuffled("rows", held, "id"), true);
    assertNothingIsLeft();
  }

  @Test
  void killedWhileItReads() throws Exception {
    killAtRow(() -> shuffled("columns", SQL, "id + hold(id * 0) AS id"), true);
    assertNothingIsLeft();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void killedWhileItServes(String route) throws Exception {
    killAtRow(() -> shuffled(route, SQL, "id + hold(id * 0) AS id"), false);
    assertNothingIsLeft();
  }

  private static void assertNothingIsLeft() {
    CLUSTER.awaitExecutors();
    CLUSTER.awaitNothingUsed();
  }

  private interface Job {
    JavaRDD<String> rows();
  }

  /** Kills the executor of the held task, or the other one, from which the task then reads. */
  private static void killAtRow(Job job, boolean ofTheHeld) throws Exception {
    try (HeldTask held = HeldTask.register(CLUSTER.session(), WORKSPACE, 0);
        TaskLog log = TaskLog.open(CLUSTER.context())) {
      JavaRDD<String> rows = job.rows();
      held.hold();
      CompletableFuture<List<String>> collected =
          CompletableFuture.supplyAsync(() -> rows.collect().stream().sorted().toList());
      ExecutorProcess victim = executor(log.executorOf(held.awaitHeld()), ofTheHeld);
      victim.kill();
      held.release();
      Rows.assertSame("killed", expected(), collected.get(3, TimeUnit.MINUTES));
      if (!ofTheHeld) {
        assertThat(log.fetchFailures()).as("executors that were read from").contains(victim.id());
      }
    }
  }

  /** The executor of this id, or the other one. */
  private static ExecutorProcess executor(String id, boolean itself) {
    return CLUSTER.executors().stream()
        .filter(executor -> executor.id().equals(id) == itself)
        .findFirst()
        .orElseThrow();
  }

  private static JavaRDD<String> shuffled(String route, String sql, String id) {
    Queries.configure(CLUSTER.session(), false);
    CLUSTER.session().conf().set("spark.weft.route", route);
    return CLUSTER
        .session()
        .sql(sql)
        .repartition(5, col("id"))
        .selectExpr(id, "s")
        .javaRDD()
        .map(RowText.FUNCTION);
  }

  private static List<String> expected() {
    return CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
  }
}
