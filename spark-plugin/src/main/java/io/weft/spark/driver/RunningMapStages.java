package io.weft.spark.driver;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.Resubmitted$;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;

/**
 * The shuffles whose map stage runs. Follows Spark's events, so it may be a moment late.
 * Thread-safe.
 */
public final class RunningMapStages extends SparkListener {
  /** The attempt of the stage that runs, by shuffle. */
  private final Map<Integer, Attempt> running = new ConcurrentHashMap<>();

  private record Attempt(int stage, int number, int tasks, boolean repeats) {
    boolean is(int itsStage, int itsNumber) {
      return stage == itsStage && number == itsNumber;
    }

    Attempt repeating() {
      return new Attempt(stage, number, tasks, true);
    }
  }

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
      running.computeIfPresent(
          (Integer) stage.shuffleDepId().get(),
          (shuffle, attempt) ->
              attempt.is(stage.stageId(), stage.attemptNumber()) ? null : attempt);
    }
  }

  /** Spark runs tasks again whose outputs were lost with their executor. */
  @Override
  public void onTaskEnd(SparkListenerTaskEnd ended) {
    if (ended.reason() instanceof Resubmitted$) {
      running.replaceAll(
          (shuffle, attempt) ->
              attempt.is(ended.stageId(), ended.stageAttemptId()) ? attempt.repeating() : attempt);
    }
  }

  private static Attempt attempt(StageInfo stage) {
    return new Attempt(stage.stageId(), stage.attemptNumber(), stage.numTasks(), false);
  }

  /** Whether a map stage of a shuffle runs. */
  public boolean isRunning(int shuffle) {
    return running.containsKey(shuffle);
  }

  /**
   * The number of tasks of the map stage that runs, if it is a first attempt that repeats none of
   * them; else 0.
   */
  public int firstTasks(int shuffle) {
    Attempt attempt = running.get(shuffle);
    return attempt == null || attempt.number > 0 || attempt.repeats ? 0 : attempt.tasks;
  }
}
