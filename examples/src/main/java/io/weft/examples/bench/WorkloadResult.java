package io.weft.examples.bench;

import java.util.List;
import java.util.Optional;

/**
 * What one workload showed.
 *
 * @param id its name
 * @param title what it is
 * @param query whether it is a whole query rather than a shuffle
 * @param rows shuffled; of a query, in its result
 * @param dataBytes of data in those rows; 0 for a query
 * @param copyBytesPerSecond how fast the machine copied memory just before
 * @param equal whether all sides came to the same result
 * @param sides Spark's own shuffle first
 */
public record WorkloadResult(
    String id,
    String title,
    boolean query,
    long rows,
    long dataBytes,
    double copyBytesPerSecond,
    boolean equal,
    List<SideResult> sides) {
  public WorkloadResult {
    sides = List.copyOf(sides);
  }

  /** The side that the others are compared with. */
  public SideResult spark() {
    return sides.get(0);
  }

  /** How many times less time a side takes than Spark. */
  public double speedup(SideResult side) {
    return spark().shuffleSeconds().median() / side.shuffleSeconds().median();
  }

  /** How many times less processor time a side takes than Spark. */
  public double cpuSpeedup(SideResult side) {
    return spark().shuffleCpuSeconds().median() / side.shuffleCpuSeconds().median();
  }

  /** A side's time as a multiple of one copy of the data; empty for a query. */
  public Optional<Double> timesCopy(SideResult side) {
    return query || dataBytes == 0
        ? Optional.empty()
        : Optional.of(side.shuffleSeconds().median() * copyBytesPerSecond / dataBytes);
  }
}
