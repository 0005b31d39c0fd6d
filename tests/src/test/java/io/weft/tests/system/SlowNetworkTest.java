package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.NetworkNamespaces;
import io.weft.tests.support.Rows;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkException;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Executors on two hosts whose network is slow, loses frames, or is cut in the middle of a job. */
class SlowNetworkTest {
  private static final int ROWS = 30_000;
  private static final String SQL =
      "SELECT id, REPEAT(STRING(id), 4) AS s FROM RANGE(0, " + ROWS + ", 1, 6)";

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final NetworkNamespaces NETWORK = new NetworkNamespaces(WORKSPACE);

  /**
   * The executors share the kernel and the file system, so settings must tell them not to use that.
   */
  @RegisterExtension
  @Order(3)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .network(NETWORK)
          .set("spark.weft.transport", "tcp")
          .set("spark.weft.fetch.timeout", "6s")
          .set("spark.stage.maxConsecutiveAttempts", "2")
          // This timeout also applies to other requests between executors, and to new connections.
          .set("spark.shuffle.io.connectionTimeout", "8s")
          .set("spark.shuffle.io.maxRetries", "1")
          .set("spark.shuffle.io.retryWait", "1s");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  @AfterEach
  void mend() {
    NETWORK.heal();
    NETWORK.impair(0, 0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void delayAndLossChangeNoRow(String route) {
    NETWORK.impair(20, 1);
    long before = CLUSTER.sum("remoteBytes");
    Rows.assertSame("20 ms, 1 %", expected(), collect(route));
    assertThat(CLUSTER.sum("remoteBytes")).as("bytes between the hosts").isGreaterThan(before);
  }

  /** By default the executors measure the network, which is slow, and compress what shrinks. */
  @Test
  void blocksAreCompressedOnceTheNetworkIsFoundSlow() {
    Queries.configure(CLUSTER.session(), false);
    String wide = "SELECT id, REPEAT(STRING(id), 40) AS s FROM RANGE(0, 200000, 1, 6)";
    long expected = hashes(CLUSTER.session().sql(wide));
    for (int round = 0; round < 2; round++) {
      assertThat(hashes(CLUSTER.session().sql(wide).repartition(12, col("id"))))
          .isEqualTo(expected);
    }
    long plain = CLUSTER.sum("compressedBytesBefore");
    assertThat(plain).as("bytes that were compressed").isPositive();
    assertThat(CLUSTER.sum("compressedBytesSent")).isLessThan(plain / 2);
  }

  private static long hashes(Dataset<Row> rows) {
    return rows.selectExpr("SUM(HASH(id, s))").head().getLong(0);
  }

  /**
   * Every reduce task needs both hosts. Spark either succeeds with one host, or reports why not.
   */
  @Test
  void aCutLinkEndsTheJobAndTheNextOneAfterItWorks() throws Exception {
    NETWORK.impair(20, 0);
    FirstReduceTask first = new FirstReduceTask();
    CLUSTER.context().addSparkListener(first);
    CompletableFuture<List<String>> rows = CompletableFuture.supplyAsync(() -> collect("rows"));
    try {
      assertThat(first.ended.await(2, TimeUnit.MINUTES)).as("a reduce task that ended").isTrue();
      NETWORK.cut();
      Rows.assertSame("cut", expected(), rows.get(3, TimeUnit.MINUTES));
    } catch (ExecutionException e) {
      assertThat(e.getCause())
          .isInstanceOf(SparkException.class)
          .hasMessageContaining("FetchFailed");
    } finally {
      CLUSTER.context().removeSparkListener(first);
    }
    NETWORK.heal();
    Rows.assertSame("after it", expected(), collect("rows"));
  }

  private static List<String> collect(String route) {
    Queries.configure(CLUSTER.session(), false);
    CLUSTER.session().conf().set("spark.weft.route", route);
    return CLUSTER
        .session()
        .sql(SQL)
        .repartition(12, col("id"))
        .javaRDD()
        .map(RowText.FUNCTION)
        .collect()
        .stream()
        .sorted()
        .toList();
  }

  private static List<String> expected() {
    return CLUSTER.session().sql(SQL).collectAsList().stream().map(RowText::of).sorted().toList();
  }

  private static final class FirstReduceTask extends SparkListener {
    private final CountDownLatch ended = new CountDownLatch(1);

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (end.taskType().equals("ResultTask")) {
        ended.countDown();
      }
    }
  }
}
