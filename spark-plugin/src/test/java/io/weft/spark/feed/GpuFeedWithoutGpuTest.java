package io.weft.spark.feed;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.weft.spark.LocalSpark;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.spark.sql.WeftGpu;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.function.FilterFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Without a usable GPU a feed reports the reason, and host batches still work. */
class GpuFeedWithoutGpuTest {
  @TempDir Path folder;

  private void save(Dataset<Row> rows) {
    String path = folder.resolve("features").toString();
    rows.write().format("weft").option("ranks", 1).option("toGpus", true).save(path);
  }

  @Test
  void theReasonIsReported() {
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
      assertThat(feed.onGpus().train(task -> FeedData.epoch(task, 0)))
          .isEqualTo(feed.train(task -> FeedData.epoch(task, 0)));
      WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
      assertThat(manager.hostFeeds().counts()).isEqualTo(Map.of(reason, 1L));
      assertThatThrownBy(feed::exportToGpus).hasStackTraceContaining(reason);
      assertThatThrownBy(() -> save(FeedData.rows(spark.session(), 40, 2)))
          .hasStackTraceContaining(reason);
      assertThat(folder.resolve("features")).doesNotExist();
    }
  }

  /** The plan is made for GPUs, and the map tasks find none. */
  @Test
  void batchesOfQueriesAreDealtOnTheHost() {
    try (LocalSpark spark = LocalSpark.start(Map.of())) {
      String obstacle = ExecutorGpu.current().exchangeObstacle();
      assumeFalse(obstacle.isEmpty(), "this machine has a GPU");
      Dataset<Row> rows = FeedData.rows(spark.session(), 300, 3);
      for (String key : List.of("", "group")) {
        WeftFeed expected = feed(rows, key);
        WeftFeed found = feed(WeftGpu.onDevice(rows), key).onGpus();
        assertThat(found.train(task -> FeedData.epoch(task, 0)))
            .isEqualTo(expected.train(task -> FeedData.epoch(task, 0)));
      }
      WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
      assertThat(manager.hostFeeds().counts()).isEqualTo(Map.of(obstacle, 2L));
    }
  }

  /** The map tasks of the feed deal their input again, on the host. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theExchangesBelowRunOnce(boolean endsOnDevice) {
    Map<String, String> settings =
        Map.of(
            "spark.weft.route", "auto",
            "spark.sql.shuffle.orderIndependentChecksum.enabled", "false");
    try (LocalSpark spark = LocalSpark.start(settings)) {
      assumeFalse(ExecutorGpu.current().exchangeObstacle().isEmpty(), "this machine has a GPU");
      COMPUTED.set(0);
      Dataset<Row> counted =
          FeedData.rows(spark.session(), 300, 3)
              .filter((FilterFunction<Row>) row -> COMPUTED.incrementAndGet() > 0);
      Dataset<Row> query =
          (endsOnDevice ? WeftGpu.onDevice(counted) : counted).repartition(3, col("id"));
      assertThat(query.queryExecution().executedPlan().toString().contains("blocks on GPUs"))
          .isEqualTo(endsOnDevice);
      WeftFeed feed = feed(query, "group").lastBatch(LastBatch.KEEP).onGpus();
      assertThat(feed.train(FeedTask::steps).get(0)).isPositive();
      assertThat(COMPUTED).hasValue(300);
    }
  }

  private static final AtomicInteger COMPUTED = new AtomicInteger();

  private static WeftFeed feed(Dataset<Row> rows, String key) {
    WeftFeed feed = WeftFeed.shards(rows, 2).batchRows(10).shuffled(3);
    return key.isEmpty() ? feed : feed.by(key);
  }
}
