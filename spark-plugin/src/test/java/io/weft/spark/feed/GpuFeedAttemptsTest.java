package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.device.DeviceCatalog;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.gpu.ExecutorGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.BarrierTaskContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Lost blocks on the device. Spark then treats their executor, this JVM, as lost too. */
class GpuFeedAttemptsTest {
  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark = DoubleGpus.start(Map.of("spark.master", "local[2,4]"));
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  /** A fetch failure names the block, its map task runs again, and training restarts. */
  @Test
  void aBlockThatIsLostIsComputedAgain() {
    WeftFeed feed =
        WeftFeed.shards(FeedData.rows(spark.session(), 200, 3), 2)
            .batchRows(10)
            .lastBatch(LastBatch.KEEP);
    List<ArrayList<List<Long>>> expected = feed.train(GpuExchangeTest::onHost);
    List<ArrayList<List<Long>>> found =
        feed.onGpus()
            .train(
                task -> {
                  if (BarrierTaskContext.get().stageAttemptNumber() == 0 && task.rank() == 0) {
                    DeviceCatalog catalog = ExecutorGpu.current().exchange().catalog();
                    catalog.remove(catalog.keys().get(1));
                    throw new IllegalStateException("a rank that fails once");
                  }
                  return GpuExchangeTest.onDevice(task);
                });
    assertThat(found).isEqualTo(expected);
  }
}
