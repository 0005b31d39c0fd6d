package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.LocalSpark;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Where there is no GPU, or none is wanted, that is the reason, and batches of the host go on. */
class GpuFeedWithoutGpuTest {
  @Test
  void theReasonIsSaid() {
    try (LocalSpark spark = LocalSpark.start(Map.of("spark.weft.transport", "shm"))) {
      WeftFeed feed = WeftFeed.shards(FeedData.rows(spark.session(), 40, 2), 1).batchRows(10);
      String reason = "executor driver has no GPU for arrays: spark.weft.transport is not auto";
      List<String> reasons =
          feed.train(
              task -> {
                assertThatThrownBy(() -> task.gpuBatches(0))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage(reason);
                assertThat(FeedData.epoch(task, 0)).hasSize(4);
                return task.gpuObstacle().orElse("");
              });
      assertThat(reasons).containsExactly(reason);
      assertThatThrownBy(feed::exportToGpus).hasStackTraceContaining(reason);
    }
  }
}
