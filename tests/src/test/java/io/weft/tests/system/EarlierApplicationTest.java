package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.ExecutorProbe;
import io.weft.tests.support.Sessions;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec$;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * A cluster whose driver's JVM had another application before. Adaptive execution keeps that
 * application's threads, whose session is stopped. In such a thread it creates shuffles of inputs
 * without a partition, and never ends if that fails.
 */
class EarlierApplicationTest {
  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  /** The threads of adaptive execution's pool. */
  private static final int THREADS = 16;

  private static final long MAX_MINUTES = 10;

  private static final String[] KEY = {"id"};

  private final CountDownLatch clusterRuns = new CountDownLatch(1);

  @Test
  @Timeout(value = MAX_MINUTES, unit = TimeUnit.MINUTES)
  void inputsWithoutPartitionsAreSorted() throws InterruptedException {
    SparkSession earlier = Sessions.plain(WORKSPACE);
    try {
      makeThreads();
    } finally {
      earlier.stop();
    }
    SparkSession session = Sessions.weft(WORKSPACE, "local-cluster[2,1,1024]", Map.of());
    try {
      Queries.configure(session, true);
      clusterRuns.countDown();
      for (String route : List.of("auto", "rows", "columns")) {
        session.conf().set("spark.weft.route", route);
        Dataset<Row> none = withoutPartitions(session);
        assertThat(none.orderBy("k").collectAsList()).as(route).isEmpty();
        Dataset<Row> joined = session.range(0, 10, 1, 2).join(none, KEY, "left_outer");
        assertThat(joined.orderBy("k", "id").collectAsList()).as(route).hasSize(10);
      }
      assertThat(ExecutorProbe.sum(session.sparkContext(), "outputsPublished")).isPositive();
    } finally {
      clusterRuns.countDown();
      session.stop();
    }
    WORKSPACE.awaitNoFiles();
  }

  /**
   * Makes all threads of the pool, and keeps them busy so that none ends before the cluster runs.
   */
  private void makeThreads() throws InterruptedException {
    CountDownLatch made = new CountDownLatch(THREADS);
    for (int i = 0; i < THREADS; i++) {
      AdaptiveSparkPlanExec$.MODULE$.executionContext().execute(() -> hold(made));
    }
    assertThat(made.await(MAX_MINUTES, TimeUnit.MINUTES)).isTrue();
  }

  private void hold(CountDownLatch made) {
    made.countDown();
    try {
      clusterRuns.await(MAX_MINUTES, TimeUnit.MINUTES);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static Dataset<Row> withoutPartitions(SparkSession session) {
    StructType schema =
        new StructType().add("id", DataTypes.LongType).add("k", DataTypes.StringType);
    JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
    return session.createDataFrame(context.emptyRDD(), schema).selectExpr("id", "k", "id * 2 more");
  }
}
