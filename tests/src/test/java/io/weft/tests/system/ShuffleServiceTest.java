package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Rows;
import io.weft.tests.support.ShuffleService;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.RowText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.FetchFailed;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import scala.jdk.javaapi.CollectionConverters;

/** Spark's external shuffle service with a fixed number of executors. */
class ShuffleServiceTest {
  private static final ShuffleService SERVICE = ShuffleService.start();

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER = withService(new WeftCluster(WORKSPACE));

  private static WeftCluster withService(WeftCluster cluster) {
    SERVICE.settings().forEach(cluster::set);
    return cluster;
  }

  @AfterAll
  static void stopService() {
    SERVICE.close();
  }

  @Test
  void outputsOfAnEndedExecutorAreComputedAgainBeforeAFetchFails() {
    JavaRDD<String> rows =
        CLUSTER
            .session()
            .sql("SELECT id, REPEAT(STRING(id), 3) AS s FROM RANGE(0, 30000, 1, 8)")
            .repartition(9, col("id"))
            .javaRDD()
            .map(RowText.FUNCTION);
    List<String> expected = rows.collect().stream().sorted().toList();
    AtomicInteger failures = countFetchFailures();
    ExecutorProcess victim = CLUSTER.executors().get(0);
    assertThat(locations()).contains(victim.id());
    victim.kill();
    Awaitility.await("no output of " + victim)
        .atMost(Duration.ofMinutes(3))
        .untilAsserted(() -> assertThat(locations()).isNotEmpty().doesNotContain(victim.id()));
    Rows.assertSame("second job", expected, rows.collect().stream().sorted().toList());
    assertThat(failures).hasValue(0);
  }

  private static AtomicInteger countFetchFailures() {
    AtomicInteger failures = new AtomicInteger();
    CLUSTER
        .context()
        .addSparkListener(
            new SparkListener() {
              @Override
              public void onTaskEnd(SparkListenerTaskEnd end) {
                if (end.reason() instanceof FetchFailed) {
                  failures.incrementAndGet();
                }
              }
            });
    return failures;
  }

  /** The executors with a registered map output. */
  private static List<String> locations() {
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    List<String> executors = new ArrayList<>();
    for (ShuffleStatus shuffle : CollectionConverters.asJava(tracker.shuffleStatuses()).values()) {
      for (MapStatus output : shuffle.mapStatuses()) {
        if (output != null) {
          executors.add(output.location().executorId());
        }
      }
    }
    return executors;
  }
}
