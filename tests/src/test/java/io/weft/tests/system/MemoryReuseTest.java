package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Fresh memory is touched only once: the second and later shuffles of one size reuse memory of the
 * arena.
 */
class MemoryReuseTest {
  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE).set("spark.weft.memory.segmentSize", "4m");

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void laterShufflesOfOneSizeTouchNoFreshMemory(String route) {
    CLUSTER.session().conf().set("spark.weft.route", route);
    shuffle();
    CLUSTER.awaitNothingUsed();
    long fresh = CLUSTER.sum("memoryFresh");
    assertThat(fresh).as("bytes that the first shuffle touched").isGreaterThan(20_000_000);
    for (int round = 2; round <= 4; round++) {
      long published = CLUSTER.sum("bytesPublished");
      shuffle();
      assertThat(CLUSTER.sum("bytesPublished") - published)
          .as("bytes of round " + round)
          .isGreaterThan(20_000_000);
      CLUSTER.awaitNothingUsed();
      assertThat(CLUSTER.sum("memoryFresh"))
          .as("fresh bytes after round " + round)
          .isEqualTo(fresh);
    }
  }

  /** Two map tasks, so that each of the two executors gets one every time. */
  private static void shuffle() {
    long rows =
        CLUSTER
            .session()
            .sql("SELECT id, XXHASH64(id) AS h, STRING(id) AS s FROM RANGE(0, 800000, 1, 2)")
            .repartition(6, col("id"))
            .javaRDD()
            .count();
    assertThat(rows).isEqualTo(800000);
  }
}
