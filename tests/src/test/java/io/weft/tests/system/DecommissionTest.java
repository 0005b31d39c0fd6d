package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

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
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Blocks whose executor or shuffle ends in an orderly way: those of a decommissioned executor move
 * to another one, those of a shuffle that is unregistered stay for the tasks that read them.
 */
class DecommissionTest {
  private static final int MAP_TASKS = 8;

  /** The first map task and half of the second have no rows. */
  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 3) AS s FROM RANGE(0, 40000, 1, 8) WHERE id >= 7500";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE).migrating().set("spark.weft.fetch.timeout", "20s");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void whatADecommissionedExecutorWroteMovesAndIsNotMadeAgain(String route) {
    secondJobAfterDecommission(route);
    CLUSTER.awaitNothingUsed();
  }

  private static void secondJobAfterDecommission(String route) {
    JavaRDD<String> rows = shuffled(route);
    Rows.assertSame("first job", expected(), sorted(rows));
    CLUSTER.decommission(CLUSTER.executors().subList(0, 1));
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("second job", expected(), sorted(rows));
      assertThat(log.mapTasks()).as("map tasks of the second job").isZero();
      assertThat(log.fetchFailures()).isEmpty();
    }
    assertThat(CLUSTER.sum("outputsAdopted")).isPositive();
  }

  @Test
  void whatNobodyIsLeftToTakeIsMadeAgain() {
    JavaRDD<String> rows = shuffled("rows");
    Rows.assertSame("first job", expected(), sorted(rows));
    CLUSTER.decommission(CLUSTER.executors());
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("second job", expected(), sorted(rows));
      assertThat(log.mapTasks()).as("map tasks of the second job").isEqualTo(MAP_TASKS);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void blocksThatAreReadOutliveTheirShuffle(String route) throws Exception {
    CLUSTER.session().conf().set("spark.weft.route", route);
    try (HeldTask held = HeldTask.register(CLUSTER.session(), WORKSPACE, 19000).hold()) {
      unregisterWhileRead(held);
    }
    CLUSTER.awaitNothingUsed();
  }

  /** One map task, so that no block is left for the held task to open. */
  private static void unregisterWhileRead(HeldTask held) throws Exception {
    Queries.configure(CLUSTER.session(), false);
    String sql = "SELECT id, REPEAT('weft', 20) AS s FROM RANGE(0, 40000, 1, 1)";
    Dataset<Row> data =
        CLUSTER.session().sql(sql).repartition(2, col("id")).selectExpr("hold(id) AS id", "s");
    JavaRDD<String> rows = data.javaRDD().map(RowText.FUNCTION);
    List<String> expected = CLUSTER.session().sql(sql).javaRDD().map(RowText.FUNCTION).collect();
    CompletableFuture<List<String>> read = CompletableFuture.supplyAsync(rows::collect);
    held.awaitHeld();
    CLUSTER.context().cleaner().get().doCleanupShuffle(shuffleOf(rows.rdd()), true);
    held.release();
    Rows.assertSame(
        "rows of a shuffle that was unregistered",
        expected.stream().sorted().toList(),
        read.get(2, TimeUnit.MINUTES).stream().sorted().toList());
  }

  /** The one shuffle that an RDD is made of. */
  private static int shuffleOf(RDD<?> rdd) {
    AtomicInteger found = new AtomicInteger(-1);
    CollectionConverters.asJava(rdd.dependencies())
        .forEach(
            dependency ->
                found.set(
                    dependency instanceof ShuffleDependency<?, ?, ?> shuffle
                        ? shuffle.shuffleId()
                        : shuffleOf(dependency.rdd())));
    return found.get();
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
