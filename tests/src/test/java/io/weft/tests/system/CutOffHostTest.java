package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.NetworkNamespaces;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.time.Duration;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * A host is cut off from all others for 30 s, so that Spark declares its executor dead, and comes
 * back then. Its map outputs are read from their copies. What it does after its return changes no
 * row.
 */
@Tag("slow")
class CutOffHostTest {
  private static final int MAP_TASKS = 8;
  private static final Duration CUT = Duration.ofSeconds(30);
  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 12) AS s FROM RANGE(0, 30000, 1, 8)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final NetworkNamespaces NETWORK = new NetworkNamespaces(WORKSPACE);

  @RegisterExtension
  @Order(3)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .network(NETWORK)
          .copying()
          .set("spark.weft.adopt.enabled", "true")
          .set("spark.weft.transport", "tcp")
          .set("spark.weft.fetch.timeout", "4s")
          .set("spark.executor.heartbeatInterval", "1s")
          .set("spark.network.timeout", "8s")
          .set("spark.network.timeoutInterval", "1s")
          .set("spark.shuffle.io.maxRetries", "1")
          .set("spark.shuffle.io.retryWait", "1s")
          .set("spark.task.maxFailures", "10")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  /** Not within the test, whose frame still refers to the shuffle. */
  @AfterEach
  void nothingIsLeft() {
    NETWORK.heal();
    CLUSTER.awaitExecutors();
    CLUSTER.awaitNothingUsed();
  }

  @Test
  void aHostThatIsCutOffIsFenced() {
    CLUSTER.awaitExecutors();
    Queries.configure(CLUSTER.session(), false);
    List<String> expected =
        CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
    long before = CLUSTER.sum("outputsCopied");
    JavaRDD<String> rows =
        CLUSTER.session().sql(SQL).repartition(9, col("id")).javaRDD().map(RowText.FUNCTION);
    Rows.assertSame("before", expected, sorted(rows));
    CLUSTER.awaitSum("outputsCopied", before + MAP_TASKS);
    int shuffle = MapOutputs.lastShuffle();
    ExecutorProcess cutOff = CLUSTER.executorOfHost(2);
    assertThat(MapOutputs.at(shuffle, cutOff)).as("outputs at " + cutOff).isPositive();
    long start = System.nanoTime();
    NETWORK.cutOff(2);
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      while (System.nanoTime() - start < CUT.toNanos()) {
        Rows.assertSame("while it is cut off", expected, sorted(rows));
      }
      assertThat(log.mapTasks()).as("map tasks while it is cut off").isZero();
    }
    NETWORK.heal();
    Rows.assertSame("when it is back", expected, sorted(rows));
    cutOff.awaitEnd(Duration.ofMinutes(3));
    assertThat(MapOutputs.at(shuffle, cutOff)).as("outputs at " + cutOff).isZero();
    Rows.assertSame("after its end", expected, sorted(rows));
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
