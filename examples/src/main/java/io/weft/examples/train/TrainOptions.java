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
    hidden = List.copyOf(hidden);
    require(
        scale > 0 && scale < Double.POSITIVE_INFINITY,
        "--scale has to be more than 0, not " + scale);
    require(
        hidden.stream().allMatch(units -> units > 0),
        "--hidden needs layers of at least one unit each, not " + hidden);
    require(epochs > 0, "--epochs has to be at least 1, not " + epochs);
    require(batchRows > 0, "--batch needs at least one row, not " + batchRows);
    require(
        learningRate > 0 && learningRate < Double.POSITIVE_INFINITY,
        "--rate has to be more than 0, not " + learningRate);
    require(runs >= 0, "--runs has to be 0 or more, not " + runs);
  }

  private static void require(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalArgumentException(otherwise);
    }
  }
}
