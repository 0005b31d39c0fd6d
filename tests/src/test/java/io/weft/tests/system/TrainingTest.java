package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.weft.examples.train.FeedTraining;
import io.weft.examples.train.RankReport;
import io.weft.examples.train.Restarts;
import io.weft.examples.train.TrainingPlan;
import io.weft.spark.feed.RankFailedException;
import io.weft.spark.feed.WeftFeed;
import io.weft.tests.application.FailingFunction;
import io.weft.tests.application.LinearModels;
import io.weft.tests.application.TrainingRows;
import io.weft.tests.support.ApplicationJar;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.NavigableMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Training on two executors, from a feed, with checkpoints. */
class TrainingTest {
  private static final int ROWS = TrainingRows.ROWS;
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
          // A lost rank fails the job; then the training is started again.
          .set("spark.stage.maxConsecutiveAttempts", "1")
          .set("spark.weft.collectives.timeout", "60s");

  @BeforeEach
  void allExecutorsAreThere() {
    CLUSTER.awaitExecutors();
  }

  private static TrainingPlan plan(String name) {
    return TrainingRows.plan(
        WORKSPACE.folder().resolve("training-" + name), EPOCHS, CHECKPOINT_STEPS);
  }

  /**
   * One map task deals its rows in their order, one batch to each rank in turn. The batches of a
   * step therefore hold the same rows, as two of 64 or as one of 128.
   */
  private static List<RankReport> trainInOrder(TrainingPlan plan, int ranks) {
    return WeftFeed.shards(TrainingRows.of(CLUSTER.session()).coalesce(1), ranks)
        .batchRows(GLOBAL_BATCH / ranks)
        .train(new FeedTraining(plan, LinearModels.UNDISTURBED));
  }

  private static List<RankReport> train(TrainingPlan plan, int ranks, LinearModels models)
      throws Exception {
    WeftFeed feed =
        WeftFeed.shards(TrainingRows.of(CLUSTER.session()), ranks)
            .batchRows(GLOBAL_BATCH / ranks)
            .shuffled(plan.seed());
    return Restarts.train(feed, new FeedTraining(plan, models), 3);
  }

  @Test
  void twoRanksReachTheLossOfOneWithTheSameGlobalBatch() throws Exception {
    RankReport one = train(plan("one"), 1, LinearModels.UNDISTURBED).get(0);
    List<RankReport> two = train(plan("two"), 2, LinearModels.UNDISTURBED);
    assertThat(one.steps()).isEqualTo(EPOCHS * ROWS / GLOBAL_BATCH);
    assertThat(two).extracting(RankReport::steps).containsOnly(one.steps());
    assertThat(two).extracting(RankReport::copiedBytes).containsOnly(0L);
    assertThat(two.get(0).parametersCrc()).isEqualTo(two.get(1).parametersCrc());
    assertThat(two.get(0).lastLoss()).isLessThan(0.6);
    // Batches hold other rows, because rows are dealt to other ranks. The last losses therefore
    // differ by chance.
    assertThat(two.get(0).lastLoss()).isCloseTo(one.lastLoss(), within(0.1));
  }

  /** Only the order of the summation differs. */
  @Test
  void twoRanksReachTheLossOfOneToAThousandthWithTheSameBatches() throws Exception {
    RankReport one = trainInOrder(plan("one-in-order"), 1).get(0);
    List<RankReport> two = trainInOrder(plan("two-in-order"), 2);
    assertThat(two).extracting(RankReport::steps).containsOnly(one.steps());
    assertThat(two.get(0).lastLoss()).isLessThan(0.6);
    assertThat(two.get(0).lastLoss()).isCloseTo(one.lastLoss(), within(1e-3));
    NavigableMap<Long, Double> alone = plan("one-in-order").losses().read();
    NavigableMap<Long, Double> together = plan("two-in-order").losses().read();
    assertThat(together).hasSize(EPOCHS * ROWS / GLOBAL_BATCH).hasSameSizeAs(alone);
    alone.forEach(
        (step, loss) ->
            assertThat(together.get(step)).as("step %s", step).isCloseTo(loss, within(1e-3)));
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
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(note) || training.isDone());
    assertThat(training).as("the training, before its executor was killed").isNotDone();
    String victim = Files.readString(note);
    CLUSTER.executor(victim).kill();
    List<RankReport> reports = training.get(4, TimeUnit.MINUTES);
    assertThat(reports).extracting(RankReport::firstStep).containsOnly(40L);
    assertThat(reports)
        .extracting(RankReport::steps)
        .containsOnly(EPOCHS * ROWS / GLOBAL_BATCH - 40L);
    assertThat(reports.get(0).lastLoss()).isLessThan(0.6);
  }

  /** It would fail again in every attempt. */
  @Test
  void aFunctionThatFailsOfItselfIsNotRunAgain() throws Exception {
    Path notes = Files.createDirectory(WORKSPACE.folder().resolve("failing"));
    WeftFeed feed =
        WeftFeed.shards(TrainingRows.of(CLUSTER.session()), 2).batchRows(GLOBAL_BATCH / 2);
    assertThatThrownBy(
            () -> Restarts.train(feed, new FailingFunction(notes.toString(), "label 9"), 3))
        .isInstanceOfSatisfying(
            RankFailedException.class, failed -> assertThat(failed.rank()).isZero())
        .hasMessageContaining("The function of rank 0 of a feed failed")
        .hasMessageContaining("IllegalArgumentException: label 9");
    try (Stream<Path> runs = Files.list(notes)) {
      assertThat(runs).as("runs of rank 0").hasSize(1);
    }
  }
}
