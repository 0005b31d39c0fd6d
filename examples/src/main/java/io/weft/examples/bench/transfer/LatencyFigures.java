package io.weft.examples.bench.transfer;

import java.util.List;
import org.HdrHistogram.Histogram;

/**
 * How long single reads took, in microseconds.
 *
 * @param side by which way
 * @param count of reads
 * @param mean of all
 * @param percentiles at {@link #PERCENTILES}, and the longest as the last
 */
public record LatencyFigures(String side, long count, double mean, List<Double> percentiles) {
  /** Which percentiles are shown; the last is the longest. */
  public static final List<Double> PERCENTILES = List.of(50.0, 90.0, 99.0, 99.9, 100.0);

  public LatencyFigures {
    percentiles = List.copyOf(percentiles);
  }

  static LatencyFigures of(String side, Histogram nanos) {
    return new LatencyFigures(
        side,
        nanos.getTotalCount(),
        nanos.getMean() / 1e3,
        PERCENTILES.stream().map(at -> nanos.getValueAtPercentile(at) / 1e3).toList());
  }
}
