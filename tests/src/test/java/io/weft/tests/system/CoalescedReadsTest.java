package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.MostHeld;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * One task reads a thousand partitions in turn over TCP, with and without encrypted disks. It holds
 * the memory of one partition at a time.
 */
class CoalescedReadsTest {
  private static final int ROWS = 150_000;
  private static final int PARTITIONS = 1000;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  /** With encryption, a task that kept its chunks would wait for its own memory and fail. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aTaskHoldsOnePartition(boolean encrypted) {
    WeftCluster cluster =
        new WeftCluster(WORKSPACE)
            .set("spark.io.encryption.enabled", Boolean.toString(encrypted))
            .set("spark.weft.transport", "tcp")
            .set("spark.weft.memory.size", "1m")
            .set("spark.weft.memory.segmentSize", "1m")
            .set("spark.weft.spill.privateMemory", "4m")
            .set("spark.weft.fetch.timeout", "20s");
    cluster.start();
    try {
      assertOnePartition(cluster, "rows");
      assertOnePartition(cluster, "columns");
    } finally {
      cluster.stop();
    }
  }

  private static void assertOnePartition(WeftCluster cluster, String route) {
    cluster.session().conf().set("spark.weft.route", route);
    cluster.session().conf().set("spark.sql.adaptive.enabled", "false");
    long before = cluster.sum("remoteBlocks");
    Dataset<Row> rows =
        cluster.session().range(0, ROWS, 1, 4).selectExpr("id", "repeat(string(id), 20) AS s");
    List<MostHeld> most = measured(rows.repartition(PARTITIONS, col("id")).coalesce(1));
    assertThat(most).hasSize(1);
    assertThat(most.get(0).records()).isEqualTo(ROWS);
    assertThat(most.get(0).hashes())
        .isEqualTo(measured(rows).stream().mapToLong(MostHeld::hashes).sum());
    assertThat(most.get(0).readers()).as("open readers of " + route).isEqualTo(1);
    assertThat(most.get(0).receivingBytes()).as("received bytes").isLessThan(2 << 20);
    assertThat(cluster.sum("remoteBlocks")).as("remote blocks").isGreaterThan(before);
  }

  private static List<MostHeld> measured(Dataset<Row> rows) {
    return rows.javaRDD().mapPartitions(MostHeld.measure()).collect();
  }
}
