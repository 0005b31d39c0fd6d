package io.weft.examples.bench.transfer;

import java.util.List;

/**
 * One row of the benchmark.
 *
 * @param id short
 * @param title what was done
 * @param bytes that moved in a run; 0 where it is not about bytes
 * @param sides what is measured first
 */
public record RowResult(String id, String title, long bytes, List<SideFigures> sides, Goal goal) {
  public RowResult {
    sides = List.copyOf(sides);
  }
}
