package io.weft.spark.message;

import io.weft.spark.metrics.ExecutorStatistics;
import io.weft.spark.metrics.Metric;
import io.weft.spark.metrics.WeftMetrics;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;

/**
 * The metrics of an executor at one time.
 *
 * @param executorId Spark's executor id
 * @param host where it runs
 * @param values values by metric name
 */
public record ExecutorReport(String executorId, String host, Map<String, Long> values)
    implements Serializable {
  /** Creates the report of an executor. */
  public static ExecutorReport of(String executorId, String host, ExecutorStatistics statistics) {
    Map<String, Long> values = new HashMap<>();
    for (Metric metric : WeftMetrics.all()) {
      values.put(metric.name(), metric.read(statistics));
    }
    return new ExecutorReport(executorId, host, values);
  }

  /** The value of one metric. */
  public long get(Metric metric) {
    return get(metric.name());
  }

  /** The value of the metric with a name; 0 if there is no such metric. */
  public long get(String name) {
    return values.getOrDefault(name, 0L);
  }
}
