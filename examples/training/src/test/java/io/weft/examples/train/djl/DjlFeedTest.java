package io.weft.examples.train.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import io.weft.collectives.DataType;
import io.weft.examples.train.FeedTraining;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.PriceClasses;
import io.weft.examples.train.RankReport;
import io.weft.examples.train.TrainingPlan;
import io.weft.memory.Memory;
import io.weft.spark.WeftPlugin;
import io.weft.spark.feed.FeedBatch;
import io.weft.spark.feed.FeedBatches;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.feed.WeftTensors;
import io.weft.tensor.Tensor;
import java.nio.file.Path;
import java.util.List;
import java.util.NavigableMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs PyTorch on two ranks of a feed, and on one. */
class DjlFeedTest {
  private static final int ROWS = 4096;
  private static final int GLOBAL_BATCH = 128;
  private static final int EPOCHS = 6;
  private static final int FEATURES = 6;

  /** Two ranks sum the rows of a batch in another order than one rank. */
  private static final double TOLERANCE = 1e-3;

  private static SparkSession session;

  @TempDir Path folder;

  @BeforeAll
  static void start() {
    session =
        SparkSession.builder()
            .master("local[2]")
            .appName("weft-djl-test")
            .config("spark.plugins", WeftPlugin.class.getName())
            .config("spark.driver.host", "localhost")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .getOrCreate();
  }

  @AfterAll
  static void stop() {
    session.stop();
  }

  /** No single feature determines the class, so the model needs its hidden layer. */
  private static Dataset<Row> rows() {
    return session
        .range(0, ROWS, 1, 1)
        .selectExpr(
            "transform(sequence(0, 5),"
                + " i -> CAST(pmod(xxhash64(id, i), 2001) / 1000D - 1 AS FLOAT)) AS features")
        .selectExpr(
            "features",
            "IF(features[0] * features[1] > 0, 1, 0) + IF(features[2] > 0, 2, 0) AS label")
        .select(
            WeftTensors.column(PriceClasses.FEATURES, DataType.FLOAT32, FEATURES),
            functions.col(PriceClasses.LABEL));
  }

  private TrainingPlan plan(String name) {
    return new TrainingPlan(
        new ModelShape(FEATURES, List.of(32), 4),
        EPOCHS,
        7,
        0.01,
        1 << 10,
        folder.resolve(name).toString(),
        100);
  }

  /**
   * Trains on one or two ranks. One map task deals its rows in order, a batch to each rank in turn.
   * So the batches of a step have the same rows, whether there are two of 64 or one of 128.
   */
  private List<RankReport> train(String name, int ranks) {
    return WeftFeed.shards(rows(), ranks)
        .batchRows(GLOBAL_BATCH / ranks)
        .train(new FeedTraining(plan(name), new DjlModels()));
  }

  /** PyTorch uses the bytes of the map task at the same address. */
  @Test
  void pytorchReadsABatchInPlace() {
    List<Boolean> checked =
        WeftFeed.shards(rows(), 2)
            .batchRows(GLOBAL_BATCH)
            .train(
                task -> {
                  new DjlModels().prepare();
                  try (FeedBatches batches = task.batches(0);
                      NDManager manager =
                          NDManager.newBaseManager(Device.cpu(), DjlModels.ENGINE)) {
                    while (batches.hasNext()) {
                      FeedBatch batch = batches.next();
                      Tensor features = batch.tensor(PriceClasses.FEATURES);
                      NDArray array = DjlClassifier.over(features, manager);
                      assertThat(batch.inPlace()).isTrue();
                      assertThat(Memory.addressOf(array.toByteBuffer(true)))
                          .isEqualTo(features.address());
                    }
                    return true;
                  }
                });
    assertThat(checked).containsExactly(true, true);
  }

  @Test
  void twoRanksReachTheLossOfOneWithTheSameGlobalBatch() throws Exception {
    RankReport one = train("one", 1).get(0);
    List<RankReport> two = train("two", 2);
    assertThat(one.steps()).isEqualTo(EPOCHS * ROWS / GLOBAL_BATCH);
    assertThat(two).extracting(RankReport::steps).containsOnly(one.steps());
    assertThat(two).extracting(RankReport::copiedBytes).containsOnly(0L);
    assertThat(two.get(0).parametersCrc()).isEqualTo(two.get(1).parametersCrc());
    assertThat(two.get(0).lastLoss()).isCloseTo(one.lastLoss(), within(TOLERANCE));
    NavigableMap<Long, Double> alone = plan("one").losses().read();
    NavigableMap<Long, Double> together = plan("two").losses().read();
    assertThat(together).hasSameSizeAs(alone);
    alone.forEach(
        (step, loss) ->
            assertThat(together.get(step)).as("step %s", step).isCloseTo(loss, within(TOLERANCE)));
    assertThat(one.lastLoss()).as("progress of learning").isLessThan(alone.get(0L) / 2);
  }
}
