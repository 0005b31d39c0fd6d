package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.Footprint;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Many shuffles in one session that all stay alive, because the program may use them again: what an
 * executor's process holds grows with neither the shuffles nor their blocks, except for little
 * heap.
 */
class ManyLiveShufflesTest {
  private static final Logger LOG = LoggerFactory.getLogger(ManyLiveShufflesTest.class);

  /** Shuffles before the first measurement: code is loaded, pools and connections exist. */
  private static final int WARM = 40;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE).executors(2, 2048).set("spark.weft.memory.segmentSize", "4m");

  @Test
  void hundredsOfShuffles() {
    assertFlat(250);
  }

  @Test
  @Tag("slow")
  @Timeout(1800)
  void fiveThousandShuffles() {
    assertFlat(5000);
  }

  private static void assertFlat(int shuffles) {
    List<JavaRDD<Row>> alive = new ArrayList<>();
    for (int i = 0; i < WARM; i++) {
      alive.add(shuffle());
    }
    Footprint before = Footprint.largest(CLUSTER.context());
    for (int i = WARM; i < shuffles; i++) {
      alive.add(shuffle());
    }
    Footprint after = Footprint.largest(CLUSTER.context());
    LOG.warn("{} shuffles: {}; {} shuffles: {}", WARM, before, shuffles, after);
    assertThat(after.descriptors()).as("descriptors").isLessThan(before.descriptors() + 30);
    assertThat(after.threads()).as("threads").isLessThan(before.threads() + 20);
    assertThat(after.maps()).as("maps").isLessThan(before.maps() + 100);
    assertThat((after.heapBytes() - before.heapBytes()) / (shuffles - WARM))
        .as("bytes of heap for a live shuffle, Spark's own included")
        .isLessThan(30_000);
    assertThat(alive.get(0).count()).isEqualTo(100);
    alive.clear();
    CLUSTER.awaitNothingUsed();
  }

  /** Two map outputs, one on each executor, and three partitions, so that all read from both. */
  private static JavaRDD<Row> shuffle() {
    JavaRDD<Row> rows =
        CLUSTER.session().range(0, 100, 1, 2).toDF().repartition(3, col("id")).javaRDD();
    assertThat(rows.count()).isEqualTo(100);
    return rows;
  }

  /** 16 million blocks in one shuffle. */
  @Test
  @Tag("slow")
  @Timeout(3600)
  void fourThousandTimesFourThousandBlocks() {
    Footprint before = Footprint.largest(CLUSTER.context());
    int side = Integer.getInteger("weft.side", 4000);
    JavaRDD<Row> rows =
        CLUSTER
            .session()
            .range(0, (long) side * side, 1, side)
            .toDF()
            .repartition(side, col("id"))
            .javaRDD();
    assertThat(rows.count()).isEqualTo((long) side * side);
    Footprint after = Footprint.largest(CLUSTER.context());
    LOG.warn("before: {}; {} x {} blocks: {}", before, side, side, after);
    assertThat(after.descriptors()).as("descriptors").isLessThan(before.descriptors() + 60);
    assertThat(after.threads()).as("threads").isLessThan(before.threads() + 30);
    rows = null;
    CLUSTER.awaitNothingUsed();
  }
}
