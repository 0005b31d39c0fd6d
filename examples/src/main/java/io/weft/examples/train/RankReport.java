package io.weft.examples.train;

import java.io.Serializable;

/**
 * The report of a rank about one run, which may begin at a checkpoint.
 *
 * @param rank its number
 * @param firstStep the first step of the run, counted through all epochs
 * @param steps of the run; 0 if an earlier run had finished the training
 * @param rows trained on in these steps
 * @param lastLoss loss of the last step of the training, over all ranks; NaN if there was none
 * @param seconds of the steps
 * @param waitSeconds part of the seconds in which the rank waited for averages
 * @param copiedBytes to form batches after the exchange
 * @param parametersCrc CRC-32C of all parameters at the end, the same on all ranks
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
  /** Returns the steps of the whole training, including earlier runs. */
  public long trainedSteps() {
    return firstStep + steps;
  }
}
