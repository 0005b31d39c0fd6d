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
    Awaitility.await("outputs of the last shuffle, none at " + executor)
        .atMost(Duration.ofSeconds(30))
        .pollDelay(Duration.ZERO)
        .pollInterval(Duration.ofMillis(5))
        .untilAsserted(
            () -> assertThat(placesOfLastShuffle()).hasSize(outputs).doesNotContain(executor.id()));
  }

  private static List<String> placesOfLastShuffle() {
    var shuffles = ((MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker()).shuffleStatuses();
    int last =
        CollectionConverters.asJava(shuffles.keys().toSeq()).stream()
            .mapToInt(shuffle -> (Integer) shuffle)
            .max()
            .orElseThrow();
    ShuffleStatus statuses = shuffles.apply(last);
    return Arrays.stream(statuses.mapStatuses())
        .filter(Objects::nonNull)
        .map(MapStatus::location)
        .map(place -> place.executorId())
        .toList();
  }
}
