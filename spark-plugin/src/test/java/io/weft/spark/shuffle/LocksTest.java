package io.weft.spark.shuffle;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.LocalSpark;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingFile;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sixteen tasks at once in one executor: at no place in Weft do tasks wait for each other for more
 * than a fiftieth of their time. The share is from a JFR profile.
 */
@Tag("slow")
class LocksTest {
  private static final Logger LOG = LoggerFactory.getLogger(LocksTest.class);
  private static final int TASKS = 16;
  private static final List<String> WAITS = List.of("jdk.JavaMonitorEnter", "jdk.ThreadPark");

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void noPlaceTakesMoreThanAFiftieth(String route) throws Exception {
    Map<String, String> settings =
        Map.of(
            "spark.master",
            "local[" + TASKS + "]",
            "spark.sql.adaptive.enabled",
            "false",
            "spark.weft.route",
            route,
            "spark.weft.memory.size",
            "1g");
    try (LocalSpark spark = LocalSpark.start(settings);
        Recording recording = new Recording()) {
      shuffle(spark);
      AtomicLong taskMillis = new AtomicLong();
      spark.session().sparkContext().addSparkListener(new RunTimes(taskMillis));
      WAITS.forEach(event -> recording.enable(event).withoutThreshold().withStackTrace());
      recording.start();
      for (int round = 0; round < 5; round++) {
        shuffle(spark);
      }
      recording.stop();
      spark.drainListeners();
      Map<String, Duration> waits = waits(recording);
      Duration run = Duration.ofMillis(taskMillis.get());
      LOG.warn("{} route: tasks ran {}, waits: {}", route, run, waits);
      assertThat(run).isPositive();
      assertThat(waits)
          .allSatisfy(
              (place, waited) -> assertThat(waited).as(place).isLessThan(run.dividedBy(50)));
    }
  }

  private static void shuffle(LocalSpark spark) {
    long rows =
        spark
            .session()
            .range(0, 2_000_000, 1, 4 * TASKS)
            .selectExpr("id", "xxhash64(id) h", "string(id) s")
            .repartition(2 * TASKS, col("id"))
            .queryExecution()
            .toRdd()
            .count();
    assertThat(rows).isEqualTo(2_000_000);
  }

  /** The waits of task threads, by the method of Weft that waited. */
  private Map<String, Duration> waits(Recording recording) throws IOException {
    Path file = folder.resolve("profile.jfr");
    recording.dump(file);
    Map<String, Duration> waits = new HashMap<>();
    for (RecordedEvent event : RecordingFile.readAllEvents(file)) {
      boolean ofTask =
          event.getThread() != null
              && event.getThread().getJavaName() != null
              && event.getThread().getJavaName().startsWith("Executor task launch");
      if (ofTask && event.getStackTrace() != null) {
        event.getStackTrace().getFrames().stream()
            .limit(12)
            .filter(LocksTest::isOurs)
            .findFirst()
            .ifPresent(frame -> waits.merge(name(frame), event.getDuration(), Duration::plus));
      }
    }
    return waits;
  }

  private static boolean isOurs(RecordedFrame frame) {
    return frame.getMethod().getType().getName().startsWith("io.weft.");
  }

  private static String name(RecordedFrame frame) {
    return frame.getMethod().getType().getName() + "." + frame.getMethod().getName();
  }

  private static final class RunTimes extends SparkListener {
    private final AtomicLong millis;

    RunTimes(AtomicLong millis) {
      this.millis = millis;
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      millis.addAndGet(end.taskMetrics().executorRunTime());
    }
  }
}
