package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Rows;
import io.weft.tests.support.Sessions;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.SparkSession;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Executors that start when there is work and stop when there is none: those that hold a shuffle
 * stay as long as a task may read it.
 */
class DynamicAllocationTest {
  private static final String SQL = "SELECT id FROM RANGE(0, 20000, 1, 1)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  private static SparkSession session;

  @BeforeAll
  static void start() {
    session =
        Sessions.weft(
            WORKSPACE,
            "local-cluster[2,1,1024]",
            Map.of(
                "spark.dynamicAllocation.enabled", "true",
                "spark.dynamicAllocation.shuffleTracking.enabled", "true",
                "spark.dynamicAllocation.maxExecutors", "2",
                "spark.dynamicAllocation.executorIdleTimeout", "2s"));
    Queries.configure(session, false);
  }

  @AfterAll
  static void stop() {
    if (session != null) {
      session.stop();
    }
  }

  @Test
  void executorsStayWithTheirShufflesAndGoWithThem() {
    comeAndGo("rows");
  }

  @Test
  @Tag("slow")
  void executorsStayWithTheirShufflesAndGoWithThemByColumns() {
    comeAndGo("columns");
  }

  private static void comeAndGo(String route) {
    session.conf().set("spark.weft.route", route);
    runTwice();
    awaitExecutors(0);
  }

  /** One map task, so that one executor holds the shuffle and the other one holds no data. */
  private static void runTwice() {
    JavaRDD<String> rows =
        session.sql(SQL).repartition(6, col("id")).javaRDD().map(RowText.FUNCTION);
    Rows.assertSame("first job", expected(), sorted(rows));
    awaitExecutors(1);
    try (TaskLog log = TaskLog.open(session.sparkContext())) {
      Rows.assertSame("second job", expected(), sorted(rows));
      assertThat(log.mapTasks()).as("map tasks of the second job").isZero();
    }
  }

  /**
   * Waits for executors to stop; Spark forgets a shuffle when the driver's garbage is collected.
   */
  private static void awaitExecutors(int left) {
    Awaitility.await(left + " executors left")
        .atMost(Duration.ofMinutes(3))
        .pollInterval(Duration.ofMillis(500))
        .until(
            () -> {
              System.gc();
              return ExecutorProcess.below(ProcessHandle.current()).size() == left;
            });
  }

  private static List<String> expected() {
    return sorted(session.sql(SQL).javaRDD().map(RowText.FUNCTION));
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }
}
