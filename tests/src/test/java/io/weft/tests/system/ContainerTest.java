package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.ExecutorProbe;
import io.weft.tests.support.MadeUpContainer;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Executors in containers whose limits leave some, no or changing room for shared memory. The
 * control groups are made up, so that the test runs everywhere; {@link RealContainerTest} has a
 * real one.
 */
class ContainerTest {
  private static final long MIB = 1 << 20;
  private static final long SEGMENT = 4 * MIB;

  /** Heap of an executor, and what its JVM needs beside it. The JVM counts a few bytes less. */
  private static final long PROCESS = (1024 + 384) * MIB;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private interface Check {
    void run(WeftCluster cluster) throws Exception;
  }

  private static void in(MadeUpContainer container, String size, Check check) throws Exception {
    WeftCluster cluster =
        new WeftCluster(WORKSPACE)
            .set("spark.weft.memory.segmentSize", Long.toString(SEGMENT))
            .set("spark.weft.memory.size", size)
            .executorOptions(container.option());
    try {
      cluster.start();
      check.run(cluster);
    } finally {
      cluster.stop();
    }
  }

  @Test
  void theBudgetIsWhatTheJvmLeaves() throws Exception {
    in(
        new MadeUpContainer(WORKSPACE, PROCESS + 5 * SEGMENT),
        "0",
        cluster -> {
          JavaRDD<Row> rows = shuffle(cluster);
          assertThat(rows.count()).isEqualTo(400000);
          for (Map<String, Long> figures : ExecutorProbe.statistics(cluster.context()).values()) {
            assertThat(figures.get("memoryBudget")).isBetween(5 * SEGMENT, 25 * SEGMENT);
            assertThat(figures.get("memoryReserved"))
                .isBetween(SEGMENT, figures.get("memoryBudget"));
          }
        });
  }

  @Test
  void tooLittleRoomGoesToTheLocalFoldersAndIsSaid() throws Exception {
    in(
        new MadeUpContainer(WORKSPACE, 1024 * MIB),
        "0",
        cluster -> {
          cluster.awaitLogged(
              "Blocks go to Spark's local folders because the container leaves nothing");
          JavaRDD<Row> rows = shuffle(cluster);
          assertThat(rows.count()).isEqualTo(400000);
          assertThat(cluster.sum("memoryBudget")).isZero();
          assertThat(cluster.sum("memoryReserved")).isZero();
          assertThat(cluster.sum("diskUsed")).isGreaterThan(10 * SEGMENT);
          for (String route : List.of("rows", "columns")) {
            cluster.session().conf().set("spark.weft.route", route);
            Queries.compact().forEach(cluster::check);
          }
        });
  }

  /** The user's size stays, but memory that the container needs is returned and not taken again. */
  @Test
  void memoryReturnsBeforeTheContainerIsFull() throws Exception {
    long limit = PROCESS + 256 * MIB;
    MadeUpContainer container = new MadeUpContainer(WORKSPACE, limit);
    in(
        container,
        "200m",
        cluster -> {
          assertThat(shuffle(cluster).count()).isEqualTo(400000);
          cluster.awaitNothingUsed();
          assertThat(cluster.sum("memoryReserved")).isGreaterThan(10 * SEGMENT);
          container.use(limit);
          cluster.awaitSum("memoryReserved", 0);
          JavaRDD<Row> spilled = shuffle(cluster);
          assertThat(spilled.count()).isEqualTo(400000);
          assertThat(cluster.sum("memoryReserved")).as("in shared memory").isZero();
          assertThat(cluster.sum("diskUsed")).isGreaterThan(10 * SEGMENT);
          container.use(0);
          JavaRDD<Row> again = shuffle(cluster);
          assertThat(again.count()).isEqualTo(400000);
          assertThat(cluster.sum("memoryReserved")).as("with room").isGreaterThan(10 * SEGMENT);
          assertThat(spilled.count()).as("the spilled rows").isEqualTo(400000);
        });
  }

  /** About 60 MB in the arenas, as long as the result is reachable. */
  private static JavaRDD<Row> shuffle(WeftCluster cluster) {
    return cluster
        .session()
        .sql("SELECT id, REPEAT(STRING(XXHASH64(id)), 6) AS s FROM RANGE(0, 400000, 1, 4)")
        .repartition(5, col("id"))
        .javaRDD();
  }
}
