package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.examples.ranks.RanksCheck;
import io.weft.tests.support.ApplicationJar;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The programs of {@code weft ranks} on ranks in two executors, beside Spark's results. */
class RankProgramsTest {
  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .cores(2)
          .set(
              "spark.jars",
              BuildTree.weftJar() + "," + ApplicationJar.get() + "," + BuildTree.examplesJar())
          .set("spark.weft.collectives.timeout", "60s");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  /** Strips of different lengths and of one cell; no rows, one row, and few distinct values. */
  @ParameterizedTest
  @CsvSource({
    "4, 1003, 3, 50000, 9223372036854775807",
    "3, 3, 4, 0, 10",
    "2, 50, 0, 1, 10",
    "4, 17, 2, 20000, 2",
  })
  void resultsAreThoseOfSpark(int ranks, int cells, int steps, long rows, long distinct) {
    long misses = CLUSTER.sum("symmetricMisses") + CLUSTER.sum("symmetricHits");
    RanksCheck.Outcomes outcomes =
        RanksCheck.of(ranks, cells, steps, rows, distinct).run(CLUSTER.session());
    assertThat(outcomes.programs())
        .allSatisfy(each -> assertThat(each.equal()).as("%s", each).isTrue());
    assertThat(outcomes.programs())
        .extracting(each -> each.elements())
        .containsExactly((long) cells, rows);
    CLUSTER.awaitSum("communicatorsOpen", 0);
    assertThat(CLUSTER.sum("symmetricMisses") + CLUSTER.sum("symmetricHits") - misses)
        .as("symmetric buffers")
        .isGreaterThanOrEqualTo(ranks);
  }
}
