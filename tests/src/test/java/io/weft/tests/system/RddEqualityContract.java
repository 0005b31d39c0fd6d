package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.RddJob;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * RDD shuffles between executors give what Spark's own shuffle gives. A subclass sets the
 * serializer and the way of the blocks.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class RddEqualityContract {
  /** What Spark's shuffle gave, by job and records: the same for all serializers and ways. */
  private static final Map<String, List<String>> EXPECTED = new HashMap<>();

  @RegisterExtension
  @Order(1)
  final Workspace workspace = new Workspace();

  @RegisterExtension
  @Order(2)
  final WeftCluster cluster;

  RddEqualityContract(String serializer, String transport) {
    cluster =
        new WeftCluster(workspace)
            .set("spark.serializer", "org.apache.spark.serializer." + serializer)
            .set("spark.weft.rdd.streams", "true")
            .set("spark.weft.transport", transport);
  }

  /** The metric that grows if blocks go the way of this class. */
  abstract String blocksOfThisWay();

  @ParameterizedTest
  @EnumSource(RddJob.class)
  void resultsAreThoseOfSparksShuffle(RddJob job) {
    long taken = cluster.sum(blocksOfThisWay());
    check(job, 20_000);
    assertThat(cluster.sum(blocksOfThisWay())).as(blocksOfThisWay()).isGreaterThan(taken);
  }

  @ParameterizedTest
  @EnumSource(names = {"REPARTITION", "GROUP", "REDUCE", "SORT"})
  void noRecordAndOneRecord(RddJob job) {
    check(job, 0);
    check(job, 1);
  }

  private void check(RddJob job, int records) {
    List<String> expected =
        EXPECTED.computeIfAbsent(job + " " + records, key -> withSparksShuffle(job, records));
    assertThat(job.run(cluster.context(), records)).isEqualTo(expected);
  }

  private List<String> withSparksShuffle(RddJob job, int records) {
    cluster.session().conf().set("spark.weft.enabled", "false");
    try {
      long published = cluster.sum("outputsPublished");
      List<String> expected = job.run(cluster.context(), records);
      assertThat(cluster.sum("outputsPublished")).as("map outputs").isEqualTo(published);
      return expected;
    } finally {
      cluster.session().conf().unset("spark.weft.enabled");
    }
  }
}
