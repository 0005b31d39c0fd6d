package io.weft.examples.train;

import java.io.Serializable;
import java.util.List;

/**
 * One training from tables to a tested model.
 *
 * @param handOff how the ranks got their rows
 * @param seconds from the first SQL to the last step
 * @param fileBytes of Parquet that were written for the ranks
 * @param ranks what each rank did in the run that came to the end
 * @param accuracy on rows that were not trained on, 0 to 1
 */
public record TrainOutcome(
    HandOff handOff, double seconds, long fileBytes, List<RankReport> ranks, double accuracy)
    implements Serializable {

  /** Of the steps alone, of the slowest rank. */
  public double stepSeconds() {
    return ranks.stream().mapToDouble(RankReport::seconds).max().orElse(0);
  }

  /** Features, exchange or files, and opening models: everything but the steps. */
  public double handOffSeconds() {
    return seconds - stepSeconds();
  }

  /** Copied by all ranks to make batches. */
  public long copiedBytes() {
    return ranks.stream().mapToLong(RankReport::copiedBytes).sum();
  }

  /** Steps from the first epoch to the last, in all runs of this training. */
  public long trainedSteps() {
    return ranks.get(0).trainedSteps();
  }

  public double lastLoss() {
    return ranks.get(0).lastLoss();
  }
}
