package io.weft.examples.train;

import java.io.Serializable;

/**
 * What a rank did in one run, which may have begun at a checkpoint.
 *
 * @param rank who
 * @param firstStep where it began, counted through all epochs
 * @param steps that it did; 0 where the run before had done the last one
 * @param rows that it trained on in these steps
 * @param lastLoss of the training's last step, over all ranks; NaN if it had none
 * @param seconds of its steps
 * @param waitSeconds of them, in which it waited for averages
 * @param copiedBytes to make batches of what was exchanged
 * @param parametersCrc of all parameters at the end: the same on all ranks
 */
public record RankReport(
    int rank,
    long firstStep,
    long steps,
    long rows,
    double lastLoss,
    double seconds,
    double waitSeconds,
    long copiedBytes,
    long parametersCrc)
    implements Serializable {
  /** Steps of the whole training, those of earlier runs with them. */
  public long trainedSteps() {
    return firstStep + steps;
  }
}
