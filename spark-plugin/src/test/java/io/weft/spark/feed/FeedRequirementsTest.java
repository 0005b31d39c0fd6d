package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.LocalSpark;
import java.time.Duration;
import java.util.Map;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** Feeds in applications with special settings. */
class FeedRequirementsTest {
  /** Local applications have no dynamic allocation unless they request it in this way. */
  @Test
  void dynamicAllocationIsRefusedBeforeAnythingRuns() {
    Map<String, String> settings =
        Map.of(
            "spark.dynamicAllocation.enabled", "true",
            "spark.dynamicAllocation.testing", "true",
            "spark.dynamicAllocation.shuffleTracking.enabled", "true");
    try (LocalSpark spark = LocalSpark.start(settings)) {
      WeftFeed feed = WeftFeed.shards(FeedData.rows(spark.session(), 20, 2), 2);
      for (var start : new Runnable[] {() -> feed.train(task -> 1), feed::export}) {
        assertThatThrownBy(start::run)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("dynamic allocation")
            .hasMessageContaining("spark.dynamicAllocation.enabled to false")
            .hasMessageContaining("spark.executor.instances");
      }
      assertThat(spark.session().sparkContext().statusTracker().getJobIdsForGroup(null)).isEmpty();
    }
  }

  @Test
  void rowsAreFreedWithoutSparksCleanerToo() {
    try (LocalSpark spark = LocalSpark.start(Map.of("spark.cleaner.referenceTracking", "false"))) {
      assertThat(spark.session().sparkContext().cleaner().isEmpty()).isTrue();
      WeftFeed feed = WeftFeed.shards(FeedData.rows(spark.session(), 200, 2), 2).batchRows(10);
      assertThat(feed.train(task -> LocalSpark.statistics().arena().usedBytes() > 0))
          .containsExactly(true, true);
      MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
      Awaitility.await("the end of the shuffles of rows and results")
          .atMost(Duration.ofSeconds(60))
          .untilAsserted(
              () -> {
                assertThat(LocalSpark.statistics().arena().usedBytes()).isZero();
                assertThat(tracker.shuffleStatuses().size()).isZero();
              });
    }
  }
}
