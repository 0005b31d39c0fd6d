package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.examples.train.FeedTraining;
import io.weft.examples.train.RankReport;
import io.weft.examples.train.TrainingPlan;
import io.weft.spark.feed.WeftFeed;
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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * A training whose stage Spark repeats, as it does by default: one job, without a restart by the
 * user.
 */
class TrainingStageTest {
  private static final int EPOCHS = 4;
  private static final int BATCH_ROWS = 64;
  private static final long STEPS = EPOCHS * TrainingRows.ROWS / BATCH_ROWS / 2L;

  /** Rank 1 is killed in the forward pass of this step. */
  private static final int LOST_AT = 47;

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
          .set("spark.weft.collectives.timeout", "60s");

  private static TrainingPlan plan(String name) {
    return TrainingRows.plan(
        WORKSPACE.folder().resolve("training-" + name), EPOCHS, CHECKPOINT_STEPS);
  }

  private static List<RankReport> train(TrainingPlan plan, LinearModels models) {
    CLUSTER.awaitExecutors();
    return WeftFeed.shards(TrainingRows.of(CLUSTER.session()), 2)
        .batchRows(BATCH_ROWS)
        .shuffled(plan.seed())
        .train(new FeedTraining(plan, models));
  }

  @Test
  void theRepeatedStageGoesOnAtTheCheckpointToTheSameParameters() throws Exception {
    RankReport undisturbed = train(plan("undisturbed"), LinearModels.UNDISTURBED).get(0);
    TrainingPlan plan = plan("lost");
    Path note = WORKSPACE.folder().resolve("stopped-executor");
    CompletableFuture<List<RankReport>> training =
        CompletableFuture.supplyAsync(
            () -> train(plan, new LinearModels(note.toString(), LOST_AT)));
    Awaitility.await("a rank in the middle of its training")
        .atMost(Duration.ofMinutes(3))
        .until(() -> Files.exists(note) || training.isDone());
    assertThat(training).as("the training, before its executor was killed").isNotDone();
    String victim = Files.readString(note);
    CLUSTER.executor(victim).kill();
    List<RankReport> reports = training.get(4, TimeUnit.MINUTES);
    assertThat(reports).extracting(RankReport::firstStep).containsOnly(40L);
    assertThat(reports).extracting(RankReport::steps).containsOnly(STEPS - 40);
    // Of the same batches in the same order: bit for bit.
    assertThat(reports)
        .extracting(RankReport::parametersCrc)
        .containsOnly(undisturbed.parametersCrc());
    assertThat(reports.get(0).lastLoss()).isEqualTo(undisturbed.lastLoss());
    assertThat(plan.losses().read()).isEqualTo(plan("undisturbed").losses().read());
  }
}
