package io.weft.spark.ui;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * One executor, as the Weft tab and the event log show it. Immutable.
 *
 * @param id Spark's executor id
 * @param host where it runs
 * @param running whether it has not ended
 * @param warning a warning about it, as a sentence; empty if there is none
 * @param values its metrics by name, without zeros
 * @param memory its memory over time, the oldest sample first
 */
@JsonIgnoreProperties(ignoreUnknown = true)
public record ExecutorRow(
    String id,
    String host,
    boolean running,
    String warning,
    Map<String, Long> values,
    List<MemorySample> memory) {
  public ExecutorRow {
    host = Objects.requireNonNullElse(host, "");
    warning = Objects.requireNonNullElse(warning, "");
    values = values == null ? Map.of() : Map.copyOf(values);
    memory = memory == null ? List.of() : List.copyOf(memory);
  }

  /** The value of a metric; 0 if it is not there. */
  long get(String metric) {
    return values.getOrDefault(metric, 0L);
  }

  /**
   * An executor's memory at one time, in bytes.
   *
   * @param time milliseconds since 1970
   * @param used shared memory in use
   * @param reserved shared memory reserved
   * @param budget limit of shared memory
   * @param disk in use on disk
   */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record MemorySample(long time, long used, long reserved, long budget, long disk) {}
}
