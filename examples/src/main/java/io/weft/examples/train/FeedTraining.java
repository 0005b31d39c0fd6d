package io.weft.examples.train;

import io.weft.collectives.Communicator;
import io.weft.collectives.TypedBuffer;
import io.weft.spark.feed.FeedBatch;
import io.weft.spark.feed.FeedBatches;
import io.weft.spark.feed.FeedFunction;
import io.weft.spark.feed.FeedTask;
import io.weft.tensor.Tensor;

/**
 * The function of a rank of a feed: it trains by the plan.
 *
 * @param models creates the rank's model
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

  /**
   * Batches of a feed, read in place after the exchange. The feed copies only the remainder of each
   * map task, which is less than a batch.
   */
  static final class FeedSource implements BatchSource {
    private final FeedTask task;
    private int firstEpoch = -1;
    private long gatheredBytes;

    FeedSource(FeedTask task) {
      this.task = task;
    }

    @Override
    public Communicator communicator() {
      return task.communicator();
    }

    @Override
    public long steps() {
      return task.steps();
    }

    @Override
    public Batches batches(int epoch) {
      FeedBatches batches = task.batches(epoch);
      firstEpoch = firstEpoch < 0 ? epoch : firstEpoch;
      boolean count = epoch == firstEpoch;
      return new Batches() {
        @Override
        public boolean hasNext() {
          return batches.hasNext();
        }

        @Override
        public Batch next() {
          FeedBatch batch = batches.next();
          Tensor features = batch.tensor(PriceClasses.FEATURES);
          TypedBuffer labels = batch.tensor(PriceClasses.LABEL).buffer();
          if (count && !batch.inPlace()) {
            gatheredBytes += features.type().bytes() + labels.bytes();
          }
          return new Batch(features, labels);
        }

        @Override
        public void close() {
          batches.close();
        }
      };
    }

    @Override
    public long copiedBytes() {
      return gatheredBytes;
    }
  }
}
