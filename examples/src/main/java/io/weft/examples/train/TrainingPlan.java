package io.weft.examples.train;

import io.weft.training.AdamOptions;
import java.io.Serializable;
import java.nio.file.Path;

/**
 * The plan of a training, the same for all ranks. The driver sends it to the executors.
 *
 * @param epochs to train, 1 or more
 * @param seed of the initial parameters
 * @param learningRate of Adam
 * @param bucketBytes size of a gradient bucket
 * @param folder of checkpoints and losses, accessible to every executor
 * @param checkpointSteps steps between two checkpoints, 1 or more; the last step is followed by a
 *     checkpoint too
 */
public record TrainingPlan(
    ModelShape shape,
    int epochs,
    long seed,
    double learningRate,
    long bucketBytes,
    String folder,
    int checkpointSteps)
    implements Serializable {

  AdamOptions adam() {
    return AdamOptions.DEFAULT.withLearningRate(learningRate);
  }

  Path checkpoints() {
    return Path.of(folder, "checkpoints");
  }

  /** Returns the log in which rank 0 writes the losses. */
  public LossLog losses() {
    return new LossLog(Path.of(folder, "losses.csv"));
  }
}
