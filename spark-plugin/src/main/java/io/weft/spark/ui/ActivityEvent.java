package io.weft.spark.ui;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.util.List;
import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * What has changed in the Weft tab since the last such event, for Spark's event log. Rows replace
 * those with the same number or id, so a history server may miss earlier events. Spark writes it as
 * JSON, by the names of its components. Immutable.
 *
 * @param overview of the application
 * @param shuffles that have changed
 * @param executors that have changed
 * @param traffic between executors; null if it has not changed
 * @param events new or repeated ones
 */
@JsonIgnoreProperties(ignoreUnknown = true)
public record ActivityEvent(
    Overview overview,
    List<ShuffleRow> shuffles,
    List<ExecutorRow> executors,
    TrafficMatrix.Snapshot traffic,
    List<TimeLine.Event> events)
    implements SparkListenerEvent {
  public ActivityEvent {
    shuffles = shuffles == null ? List.of() : List.copyOf(shuffles);
    executors = executors == null ? List.of() : List.copyOf(executors);
    events = events == null ? List.of() : List.copyOf(events);
  }
}
