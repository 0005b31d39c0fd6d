package io.weft.examples.train;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.memory.Memory;
import io.weft.spark.feed.FeedFunction;
import io.weft.spark.feed.FeedTask;
import io.weft.training.Adam;
import io.weft.training.Checkpoints;
import java.io.Serializable;

/**
 * What a rank of a feed does: counts how many rows the trained model classifies right.
 *
 * @param models makes the rank its model
 */
public record FeedEvaluation(TrainingPlan plan, ModelProvider models)
    implements FeedFunction<FeedEvaluation.Score> {
  /** Of one rank. */
  public record Score(long rows, long right) implements Serializable {
    /** Both together. */
    public Score plus(Score other) {
      return new Score(rows + other.rows, right + other.right);
    }

    /** From 0 to 1. */
    public double accuracy() {
      return rows == 0 ? 0 : (double) right / rows;
    }
  }

  @Override
  public Score run(FeedTask task) throws Exception {
    FeedSource source = new FeedSource(task);
    try (TrainingModel model = models.open(plan.shape(), plan.seed());
        Adam state = new Adam(model.parameters(), plan.adam());
        BatchSource.Batches batches = source.batches(0)) {
      boolean found =
          new Checkpoints(plan.checkpoints(), 1)
              .loadNewest(model.parameters(), model.values(), state)
              .isPresent();
      if (!found) {
        throw new IllegalStateException("no checkpoint in " + plan.checkpoints());
      }
      Score score = new Score(0, 0);
      while (batches.hasNext()) {
        BatchSource.Batch batch = batches.next();
        // With the last batches kept, some of them may be empty.
        if (batch.rows() > 0) {
          score = score.plus(score(model, batch));
        }
      }
      return score;
    }
  }

  private Score score(TrainingModel model, BatchSource.Batch batch) {
    TypedBuffer logits = model.forward(batch.features(), false);
    int classes = plan.shape().classes();
    long right = 0;
    for (long row = 0; row < batch.rows(); row++) {
      int label = Memory.getInt(batch.labels().address() + 4 * row);
      if (likeliest(logits.address() + 4 * row * classes, classes) == label) {
        right++;
      }
    }
    return new Score(batch.rows(), right);
  }

  private static int likeliest(long address, int classes) {
    int best = 0;
    for (int i = 1; i < classes; i++) {
      if (Memory.getFloat(address + 4L * i) > Memory.getFloat(address + 4L * best)) {
        best = i;
      }
    }
    return best;
  }
}
