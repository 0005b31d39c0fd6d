package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.HeldTask;
import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.RowText;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A second attempt at a slow task. Spark never runs it on the host of the first, so the executors
 * have different addresses.
 */
class SpeculationTest {
  private static final int ROWS = 40000;
  private static final String FROM = " FROM RANGE(0, " + ROWS + ", 1, 4)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .hosts("127.0.0.2", "127.0.0.3")
          .set("spark.speculation", "true")
          .set("spark.speculation.quantile", "0.5")
          .set("spark.speculation.minTaskRuntime", "200ms");

  @ParameterizedTest(name = "route {0}, repartition by {1}")
  @CsvSource({"rows, 'id'", "columns, 'id'", "rows, ''", "columns, ''"})
  void theAttemptThatLosesLeavesNothing(String route, String key) throws Exception {
    SparkSession session = CLUSTER.session();
    session.conf().set("spark.weft.route", route);
    SpeculativeTasks speculative = new SpeculativeTasks();
    CLUSTER.context().addSparkListener(speculative);
    try (HeldTask held = HeldTask.register(session, WORKSPACE, ROWS / 4 - 10).hold()) {
      String hint = key.isEmpty() ? "REPARTITION(5)" : "REPARTITION(5, " + key + ")";
      String sql =
          "SELECT /*+ %s */ hold(id) AS id, REPEAT('weft', 20) AS s".formatted(hint) + FROM;
      CompletableFuture<List<String>> rows =
          CompletableFuture.supplyAsync(() -> RowText.collect(session.sql(sql)));
      held.awaitHeld();
      Rows.assertSame(
          "rows beside an attempt that still runs",
          expected(session),
          rows.get(3, TimeUnit.MINUTES).stream().sorted().toList());
      CLUSTER.context().listenerBus().waitUntilEmpty(TimeUnit.MINUTES.toMillis(3));
    } finally {
      CLUSTER.context().removeSparkListener(speculative);
    }
    assertThat(speculative.started.get()).as("speculative attempts").isPositive();
    CLUSTER.awaitNothingUsed();
  }

  private static List<String> expected(SparkSession session) {
    String sql = "SELECT id, REPEAT('weft', 20) AS s" + FROM;
    return RowText.collect(session.sql(sql)).stream().sorted().toList();
  }

  private static final class SpeculativeTasks extends SparkListener {
    private final AtomicInteger started = new AtomicInteger();

    @Override
    public void onTaskStart(SparkListenerTaskStart start) {
      if (start.taskInfo().speculative()) {
        started.incrementAndGet();
      }
    }
  }
}
