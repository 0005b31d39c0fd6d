package io.weft.examples.bench.transfer;

import java.util.Set;

/**
 * What to measure, and how much of it.
 *
 * @param rows which
 * @param runs that count
 * @param factor of the sizes of a full run; more than 0, at most 1
 */
public record TransferBenchOptions(Set<Row> rows, int runs, double factor) {
  public TransferBenchOptions {
    rows = Set.copyOf(rows);
    if (runs < 1) {
      throw new IllegalArgumentException("at least one run is needed, not " + runs);
    }
    if (!(factor > 0 && factor <= 1)) {
      throw new IllegalArgumentException("the factor has to be above 0 and at most 1: " + factor);
    }
  }

  /** Part of a number in a full run, at least 1. */
  int part(int full) {
    return (int) Math.max(1, Math.round(full * factor));
  }
}
