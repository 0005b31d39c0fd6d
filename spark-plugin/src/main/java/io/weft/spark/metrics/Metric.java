package io.weft.spark.metrics;

import java.util.function.ToLongFunction;

/**
 * A metric of an executor.
 *
 * @param name name in the metric registry
 * @param kind counter or gauge
 * @param doc the meaning, in one line
 * @param source reads the value
 */
public record Metric(
    String name, Kind kind, String doc, ToLongFunction<ExecutorStatistics> source) {
  /** Whether a metric only grows. */
  public enum Kind {
    /** Grows from the executor's start. */
    COUNTER,
    /** Rises and falls. */
    GAUGE
  }

  /** Reads the value. */
  public long read(ExecutorStatistics statistics) {
    return source.applyAsLong(statistics);
  }
}
