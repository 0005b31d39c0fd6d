package io.weft.examples.train;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * What {@code weft train} was asked for.
 *
 * @param scale of TPC-H
 * @param data where its tables are or are to be kept
 * @param batchRows of each of the two ranks
 * @param runs of each hand-off; with 0 only the feed trains, once
 * @param out where reports go
 * @param keep whether the temporary folder stays
 */
public record TrainOptions(
    double scale,
    Optional<Path> data,
    List<Integer> hidden,
    int epochs,
    int batchRows,
    double learningRate,
    int runs,
    Path out,
    boolean keep) {
  public TrainOptions {
    require(scale > 0, "the scale must be more than 0");
    require(epochs > 0, "there must be an epoch");
    require(batchRows > 0, "a batch must have a row");
    require(learningRate > 0, "the learning rate must be more than 0");
    require(runs >= 0, "runs cannot be negative");
    hidden = List.copyOf(hidden);
  }

  private static void require(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalArgumentException(otherwise);
    }
  }
}
