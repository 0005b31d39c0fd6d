package io.weft.spark.driver;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.StageInfo;

/**
 * The shuffles whose map stage runs. Follows Spark's events, so it may be a moment late.
 * Thread-safe.
 */
public final class RunningMapStages extends SparkListener {
  /** The attempt of the stage that runs, by shuffle. */
  private final Map<Integer, String> running = new ConcurrentHashMap<>();

  @Override
  public void onStageSubmitted(SparkListenerStageSubmitted submitted) {
    StageInfo stage = submitted.stageInfo();
    if (stage.shuffleDepId().isDefined()) {
      running.put((Integer) stage.shuffleDepId().get(), attempt(stage));
    }
  }

  @Override
  public void onStageCompleted(SparkListenerStageCompleted completed) {
    StageInfo stage = completed.stageInfo();
    if (stage.shuffleDepId().isDefined()) {
      running.remove((Integer) stage.shuffleDepId().get(), attempt(stage));
    }
  }

  private static String attempt(StageInfo stage) {
    return stage.stageId() + "." + stage.attemptNumber();
  }

  /** Whether a map stage of a shuffle runs. */
  public boolean isRunning(int shuffle) {
    return running.containsKey(shuffle);
  }
}
