package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.weft.collectives.buffer.DataType;
import io.weft.examples.train.FeedTraining;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.PriceClasses;
import io.weft.examples.train.RankReport;
import io.weft.examples.train.Restarts;
import io.weft.examples.train.TrainingPlan;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.feed.WeftTensors;
import io.weft.tests.application.LinearModels;
import io.weft.tests.support.ApplicationJar;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Training on two executors, from a feed, with checkpoints. */
class TrainingTest {
  private static final int ROWS = 4096;
  private static final int GLOBAL_BATCH = 128;
  private static final int EPOCHS = 4;
  private static final int CHECKPOINT_STEPS = 10;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set(
              "spark.jars",
              BuildTree.weftJar() + "," + ApplicationJar.get() + "," + BuildTree.examplesJar())
          // A rank that is lost fails the job, which is when a training begins again.
          .set("spark.stage.maxConsecutiveAttempts", "1")
          // How soon Spark looks again whether the lost executor's successor is there.
          .set("spark.scheduler.barrier.maxConcurrentTasksCheck.interval", "1s")
          .set("spark.weft.collectives.timeout", "60s");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  /** The class of a row is the largest of its first three features. */
  private static Dataset<Row> rows() {
    return CLUSTER
        .session()
        .range(0, ROWS, 1, 4)
        .selectExpr(
            "transform(sequence(0, 5),"
                + " i -> CAST(pmod(xxhash64(id, i), 2001) / 1000D - 1 AS FLOAT)) AS features")
        .selectExpr(
            "features",
            "CAST(array_position(features, array_max(slice(features, 1, 3))) - 1 AS INT) AS label")
        .select(
            WeftTensors.column(PriceClasses.FEATURES, DataType.FLOAT32, 6),
            org.apache.spark.sql.functions.col(PriceClasses.LABEL));
  }

  private static TrainingPlan plan(String name) {
    String folder = WORKSPACE.folder().resolve("training-" + name).toString();
    ModelShape shape = new ModelShape(6, List.of(), 3);
    return new TrainingPlan(shape, EPOCHS, 1, 0.05, 1 << 10, folder, CHECKPOINT_STEPS);
  }

  private static List<RankReport> train(TrainingPlan plan, int ranks, LinearModels models)
      throws Exception {
    WeftFeed feed =
        WeftFeed.shards(rows(), ranks).batchRows(GLOBAL_BATCH / ranks).shuffled(plan.seed());
    return Restarts.train(feed, new FeedTraining(plan, models), 3);
  }

  private static LinearModels undisturbed() {
    return new LinearModels("", -1);
  }

  @Test
  void twoRanksReachTheLossOfOneWithTheSameGlobalBatch() throws Exception {
    RankReport one = train(plan("one"), 1, undisturbed()).get(0);
    List<RankReport> two = train(plan("two"), 2, undisturbed());
    assertThat(one.steps()).isEqualTo(EPOCHS * ROWS / GLOBAL_BATCH);
    assertThat(two).extracting(RankReport::steps).containsOnly(one.steps());
    assertThat(two).extracting(RankReport::copiedBytes).containsOnly(0L);
    assertThat(two.get(0).parametersCrc()).isEqualTo(two.get(1).parametersCrc());
    assertThat(two.get(0).lastLoss()).isLessThan(0.6);
    // Batches hold other rows, as rows are dealt to other ranks: so the last ones differ by chance.
    assertThat(two.get(0).lastLoss()).isCloseTo(one.lastLoss(), within(0.1));
  }

  @Test
  void aLostExecutorCostsTheStepsSinceTheLastCheckpoint() throws Exception {
    TrainingPlan plan = plan("lost");
    Path note = WORKSPACE.folder().resolve("stopped-executor");
    CompletableFuture<List<RankReport>> training =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return train(plan, 2, new LinearModels(note.toString(), 47));
              } catch (Exception e) {
                throw new IllegalStateException(e);
              }
            });
    Awaitility.await("a rank in the middle of its training")
        .atMost(Duration.ofMinutes(2))
        .until(() -> Files.exists(note) || training.isDone());
    assertThat(training).as("the training, before its executor was killed").isNotDone();
    String victim = Files.readString(note);
    CLUSTER.executors().stream()
        .filter(executor -> executor.id().equals(victim))
        .forEach(ExecutorProcess::kill);
    List<RankReport> reports = training.get(4, TimeUnit.MINUTES);
    assertThat(reports).extracting(RankReport::firstStep).containsOnly(40L);
    assertThat(reports)
        .extracting(RankReport::steps)
        .containsOnly(EPOCHS * ROWS / GLOBAL_BATCH - 40L);
    assertThat(reports.get(0).lastLoss()).isLessThan(0.6);
  }
}
