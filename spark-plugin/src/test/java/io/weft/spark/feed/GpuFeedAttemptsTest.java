package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.device.DeviceCatalog;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.sql.WeftGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

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

  private static WeftFeed feed(Dataset<Row> rows) {
    return WeftFeed.shards(rows, 2).batchRows(10).shuffled(3).lastBatch(LastBatch.KEEP);
  }

  /** A fetch failure names the block, its map task runs again, and training restarts. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aBlockThatIsLostIsComputedAgain(boolean isQuery) {
    Dataset<Row> rows = FeedData.rows(spark.session(), 200, 3).drop("text");
    List<ArrayList<List<Long>>> expected = feed(rows).train(GpuExchangeTest::onHost);
    List<ArrayList<List<Long>>> found =
        feed(isQuery ? WeftGpu.onDevice(rows) : rows)
            .onGpus()
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
