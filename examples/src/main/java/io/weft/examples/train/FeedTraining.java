package io.weft.examples.train;

import io.weft.spark.feed.FeedFunction;
import io.weft.spark.feed.FeedTask;

/**
 * What a rank of a feed does: trains by the plan.
 *
 * @param models makes the rank its model
 */
public record FeedTraining(TrainingPlan plan, ModelProvider models)
    implements FeedFunction<RankReport> {
  @Override
  public RankReport run(FeedTask task) throws Exception {
    try (TrainingModel model = models.open(plan.shape(), plan.seed());
        RankTrainer trainer = new RankTrainer(plan, new FeedSource(task), model)) {
      return trainer.run();
    }
  }
}
