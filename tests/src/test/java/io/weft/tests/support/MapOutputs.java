package io.weft.tests.support;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.MapStatus;
import org.awaitility.Awaitility;
import scala.jdk.javaapi.CollectionConverters;

/** The places of map outputs, as Spark's driver in this JVM knows them. */
public final class MapOutputs {
  private MapOutputs() {}

  /** Waits until all outputs of the last shuffle are known, and none at this executor. */
  public static void awaitElsewhere(ExecutorProcess executor, int outputs) {
    awaitElsewhere(lastShuffle(), executor, outputs);
  }

  /** Waits until all outputs of a shuffle are known, and none at this executor. */
  public static void awaitElsewhere(int shuffle, ExecutorProcess executor, int outputs) {
    Awaitility.await("outputs of shuffle " + shuffle + ", none at " + executor)
        .atMost(Duration.ofSeconds(30))
        .pollDelay(Duration.ZERO)
        .pollInterval(Duration.ofMillis(5))
        .untilAsserted(
            () -> assertThat(places(shuffle)).hasSize(outputs).doesNotContain(executor.id()));
  }

  /** The number of the last shuffle. */
  public static int lastShuffle() {
    return CollectionConverters.asJava(tracker().shuffleStatuses().keys().toSeq()).stream()
        .mapToInt(shuffle -> (Integer) shuffle)
        .max()
        .orElseThrow();
  }

  /** The number of a shuffle's outputs at an executor. */
  public static long at(int shuffle, ExecutorProcess executor) {
    return places(shuffle).stream().filter(executor.id()::equals).count();
  }

  private static List<String> places(int shuffle) {
    ShuffleStatus statuses = tracker().shuffleStatuses().apply(shuffle);
    return Arrays.stream(statuses.mapStatuses())
        .filter(Objects::nonNull)
        .map(MapStatus::location)
        .map(place -> place.executorId())
        .toList();
  }

  private static MapOutputTrackerMaster tracker() {
    return (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
  }
}
