package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Folders;
import io.weft.tests.support.HeldTask;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.JavaRDD;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * All executors of the only host are killed. New ones read the copies of the map outputs: no map
 * task whose output was copied runs again, and the rows stay right.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class SurvivingHostContract {
  static final String MARKER = "weft-marker-in-plain-text";
  static final int MAP_TASKS = 8;
  static final String COPIED = "outputsCopied";

  /** A shuffle of an RDD instead of rows. */
  private static final String STREAMS = "streams";

  /** Some map tasks have no rows, and some rows are large. */
  static final String SQL =
      "SELECT id, REPEAT('"
          + MARKER
          + "', IF(id % 5000 = 0, 20000, 1)) AS s FROM RANGE(0, 30000, 1, 8) WHERE id >= 5000";

  @RegisterExtension
  @Order(1)
  final Workspace workspace = new Workspace();

  @RegisterExtension
  @Order(2)
  final WeftCluster cluster =
      new WeftCluster(workspace)
          .copying()
          .cores(2)
          .set("spark.weft.rdd.streams", "true")
          .set("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

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
  void noMapTaskRunsAgainAfterTheDeathOfAllExecutorsBetweenTwoStages(String route) {
    List<String> expected = expected();
    long before = cluster.sum(COPIED);
    JavaRDD<String> rows = shuffled(route);
    Rows.assertSame("before", expected, sorted(rows));
    cluster.awaitSum(COPIED, before + MAP_TASKS);
    for (int death = 1; death <= 2; death++) {
      killAll();
      try (TaskLog log = TaskLog.open(cluster.context())) {
        Rows.assertSame("after death " + death, expected, sorted(rows));
        assertThat(log.mapTasks()).as("map tasks after death " + death).isZero();
        assertThat(log.fetchFailures()).as("after death " + death).isEmpty();
      }
      assertThat(cluster.sum("copyBytesRead")).as("bytes read from copies").isPositive();
    }
  }

  /** The first job makes the map outputs, the second one only reads them. */
  @Test
  void noMapTaskRunsAgainAfterTheDeathOfAllExecutorsInTheReduceStage() throws Exception {
    List<String> expected = expected();
    long before = cluster.sum(COPIED);
    Queries.configure(cluster.session(), false);
    cluster.session().conf().set("spark.weft.route", "rows");
    try (HeldTask held = HeldTask.register(cluster.session(), workspace, 20_000);
        TaskLog log = TaskLog.open(cluster.context())) {
      JavaRDD<String> rows =
          cluster
              .session()
              .sql(SQL)
              .repartitionByRange(2, col("id"))
              .selectExpr("hold(id) AS id", "s")
              .javaRDD()
              .map(RowText.FUNCTION);
      Rows.assertSame("before", expected, sorted(rows));
      cluster.awaitSum(COPIED, before + MAP_TASKS);
      held.hold();
      CompletableFuture<List<String>> collected = CompletableFuture.supplyAsync(() -> sorted(rows));
      held.awaitHeld();
      killAll();
      held.release();
      Rows.assertSame("lost all executors", expected, collected.get(2, TimeUnit.MINUTES));
      assertThat(log.mapTasks()).as("map tasks").isEqualTo(MAP_TASKS);
    }
  }

  /** The reader finds the damage, and Spark computes the outputs again. */
  @Test
  void damagedCopiesAreNotUsed() throws Exception {
    List<String> expected = expected();
    long before = cluster.sum(COPIED);
    JavaRDD<String> rows = shuffled("rows");
    Rows.assertSame("before", expected, sorted(rows));
    cluster.awaitSum(COPIED, before + MAP_TASKS);
    killAll();
    damageCopies();
    try (TaskLog log = TaskLog.open(cluster.context())) {
      Rows.assertSame("with damaged copies", expected, sorted(rows));
      assertThat(log.mapTasks()).as("map tasks").isPositive();
    }
  }

  /** Changes the last byte of each copy of the last shuffle. */
  final void damageCopies() throws IOException {
    for (Path copy : copiesOf(MapOutputs.lastShuffle())) {
      byte[] bytes = Files.readAllBytes(copy);
      bytes[bytes.length - 1] ^= 1;
      Files.write(copy, bytes);
    }
  }

  /** Kills all executors and waits for new ones and for the new places of the outputs. */
  final void killAll() {
    List<ExecutorProcess> victims = cluster.executors();
    victims.forEach(ExecutorProcess::kill);
    victims.forEach(victim -> MapOutputs.awaitElsewhere(victim, MAP_TASKS));
    cluster.awaitExecutors();
  }

  /** The files of the copies of a shuffle. */
  final List<Path> copiesOf(int shuffle) {
    return Folders.tree(cluster.copies()).stream()
        .filter(file -> file.getParent().getFileName().toString().equals("" + shuffle))
        .filter(Files::isRegularFile)
        .toList();
  }

  final JavaRDD<String> shuffled(String route) {
    Queries.configure(cluster.session(), false);
    if (route.equals(STREAMS)) {
      return cluster.session().sql(SQL).javaRDD().map(RowText.FUNCTION).repartition(9);
    }
    cluster.session().conf().set("spark.weft.route", route);
    return cluster.session().sql(SQL).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
  }

  private List<String> expected() {
    return cluster.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
  }

  static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
