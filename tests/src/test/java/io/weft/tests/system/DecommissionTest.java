package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.ShuffleRemoval;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Blocks of decommissioned executors move to others, and readers on the host find them in place.
 */
@Tag("slow")
class DecommissionTest {
  private static final int MAP_TASKS = 8;

  /** A shuffle of an RDD instead of rows. */
  private static final String STREAMS = "streams";

  /** The first map task and half of the second have no rows. */
  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 3) AS s FROM RANGE(0, 40000, 1, 8) WHERE id >= 7500";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .migrating()
          .set("spark.weft.rdd.streams", "true")
          .set("spark.weft.fetch.timeout", "20s");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns", STREAMS})
  void blocksOfADecommissionedExecutorMoveAndAreNotRecomputed(String route) {
    secondJobAfterDecommission(route);
    CLUSTER.awaitNothingUsed();
  }

  private static void secondJobAfterDecommission(String route) {
    JavaRDD<String> rows = shuffled(route);
    ExecutorProcess leaving;
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("first job", expected(), sorted(rows));
      leaving = CLUSTER.executor(log.executorOfMapTask(MAP_TASKS - 1));
    }
    CLUSTER.decommission(List.of(leaving));
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("second job", expected(), sorted(rows));
      assertThat(log.mapTasks()).as("map tasks of the second job").isZero();
      assertThat(log.fetchFailures()).isEmpty();
    }
    assertThat(CLUSTER.sum("outputsMigrated")).isPositive();
  }

  @Test
  void blocksWithoutATargetAreRecomputed() {
    JavaRDD<String> rows = shuffled("rows");
    Rows.assertSame("first job", expected(), sorted(rows));
    CLUSTER.decommission(CLUSTER.executors());
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("second job", expected(), sorted(rows));
      assertThat(log.mapTasks()).as("map tasks of the second job").isEqualTo(MAP_TASKS);
    }
  }

  /** Spark removes a shuffle on all executors at about the same time. */
  @Test
  void aShuffleThatIsRemovedAtTheTargetDoesNotStopTheOthers() {
    String leaving = CLUSTER.executors().get(0).id();
    JavaRDD<String> removed = shuffled("rows");
    Rows.assertSame("removed shuffle", expected(), sorted(removed));
    CLUSTER.awaitExecutors();
    new JavaSparkContext(CLUSTER.context())
        .parallelize(List.of(1, 2), 2)
        .foreach(new ShuffleRemoval(CLUSTER.context().newShuffleId(), leaving));
    JavaRDD<String> rows = shuffled("rows");
    Rows.assertSame("first job", expected(), sorted(rows));
    CLUSTER.decommission(List.of(CLUSTER.executor(leaving)));
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      Rows.assertSame("second job", expected(), sorted(rows));
      assertThat(log.mapTasks()).as("map tasks of the second job").isZero();
    }
    Rows.assertSame("removed shuffle, again", expected(), sorted(removed));
  }

  private static JavaRDD<String> shuffled(String route) {
    Queries.configure(CLUSTER.session(), false);
    if (route.equals(STREAMS)) {
      return CLUSTER.session().sql(SQL).javaRDD().map(RowText.FUNCTION).repartition(9);
    }
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
