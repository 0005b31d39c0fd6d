package io.weft.spark.metrics;

import java.util.function.ToLongFunction;

/**
 * One figure of an executor.
 *
 * @param name as in the metric registry
 * @param kind whether it only grows
 * @param doc what it says, in one line
 * @param source where its value is found
 */
public record Metric(
    String name, Kind kind, String doc, ToLongFunction<ExecutorStatistics> source) {
  /** How a value moves. */
  public enum Kind {
    /** Grows from the executor's start. */
    COUNTER,
    /** Goes up and down. */
    GAUGE
  }

  /** The value at one moment. */
  public long read(ExecutorStatistics statistics) {
    return source.applyAsLong(statistics);
  }
}
