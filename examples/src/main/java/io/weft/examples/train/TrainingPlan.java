package io.weft.examples.train;

import io.weft.training.AdamOptions;
import java.io.Serializable;
import java.nio.file.Path;

/**
 * What every rank is told. Travels to the executors.
 *
 * @param epochs to train, 1 or more
 * @param seed of the first parameters
 * @param learningRate of Adam
 * @param bucketBytes of a gradient bucket
 * @param folder of checkpoints and losses, which every executor reaches
 * @param checkpointSteps steps between two checkpoints, 1 or more; one more follows the last step
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

  /** Where rank 0 writes the loss of every step. */
  public LossLog losses() {
    return new LossLog(Path.of(folder, "losses.csv"));
  }
}
