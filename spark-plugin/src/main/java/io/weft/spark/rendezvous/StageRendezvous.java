package io.weft.spark.rendezvous;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.storage.RDDInfo;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rendezvous of the tasks of barrier stages: one for each stage attempt, from its start to its
 * end. Never blocks, because Spark's message and listener threads call it. Thread-safe.
 */
public final class StageRendezvous {
  private static final int ENDED_STAGES = 1000;

  private final RendezvousService<StageAttempt> attempts =
      new RendezvousService<>(new ExecutorLosses());

  /** The last attempt that ended, by stage; the most recent {@link #ENDED_STAGES} stages. */
  private final Map<Integer, Integer> ended =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, Integer> eldest) {
          return size() > ENDED_STAGES;
        }
      };

  /** For example "task 7 on executor 2 at host-a". */
  public static String taskName(long taskId, String executorId, String host) {
    return "task " + taskId + " on executor " + executorId + " at " + host;
  }

  /** Answers a task at once. A task of an attempt that has ended gets a failure. */
  public synchronized RendezvousAnswer answer(RendezvousCall<StageAttempt> call) {
    if (hasEnded(call.key())) {
      return RendezvousAnswer.withoutRendezvous(
          "task %s came to %s, which has ended".formatted(call.name(), call.key()),
          List.of(call.rank()));
    }
    return attempts.answer(call);
  }

  /** The number of stage attempts that have a rendezvous, for tests. */
  int open() {
    return attempts.open();
  }

  synchronized void stageStarted(StageAttempt attempt, int tasks) {
    if (!hasEnded(attempt)) {
      attempts.expect(attempt, tasks);
    }
  }

  void taskStarted(StageAttempt attempt, int rank, String name) {
    attempts.name(attempt, rank, name);
  }

  void taskFailed(StageAttempt attempt, int rank, String reason) {
    attempts.fail(attempt, rank, reason);
  }

  synchronized void stageEnded(StageAttempt attempt) {
    ended.merge(attempt.stage(), attempt.attempt(), Math::max);
    attempts.end(this::hasEnded);
  }

  private boolean hasEnded(StageAttempt attempt) {
    return ended.getOrDefault(attempt.stage(), -1) >= attempt.attempt();
  }

  /**
   * Reports Spark's events about barrier stages to their rendezvous: the start of an attempt, where
   * its tasks run, which tasks fail, and the end of the attempt. Called on Spark's listener thread.
   */
  public static final class StageListener extends SparkListener {
    private static final int LONGEST_REASON = 300;

    private final StageRendezvous rendezvous;

    /** Creates a listener that reports to a rendezvous. */
    public StageListener(StageRendezvous rendezvous) {
      this.rendezvous = rendezvous;
    }

    @Override
    public void onStageSubmitted(SparkListenerStageSubmitted submitted) {
      StageInfo stage = submitted.stageInfo();
      if (CollectionConverters.asJava(stage.rddInfos()).stream().anyMatch(RDDInfo::isBarrier)) {
        rendezvous.stageStarted(key(stage), stage.numTasks());
      }
    }

    @Override
    public void onTaskStart(SparkListenerTaskStart start) {
      TaskInfo task = start.taskInfo();
      rendezvous.taskStarted(
          new StageAttempt(start.stageId(), start.stageAttemptId()),
          task.partitionId(),
          name(task));
    }

    private static String name(TaskInfo task) {
      return StageRendezvous.taskName(task.taskId(), task.executorId(), task.host());
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (end.taskInfo() != null && end.reason() instanceof TaskFailedReason reason) {
        rendezvous.taskFailed(
            new StageAttempt(end.stageId(), end.stageAttemptId()),
            end.taskInfo().partitionId(),
            "failed: " + firstLine(reason.toErrorString()));
      }
    }

    private static String firstLine(String text) {
      String line = text.lines().findFirst().orElse("");
      return line.length() <= LONGEST_REASON ? line : line.substring(0, LONGEST_REASON) + "…";
    }

    @Override
    public void onStageCompleted(SparkListenerStageCompleted completed) {
      rendezvous.stageEnded(key(completed.stageInfo()));
    }

    private static StageAttempt key(StageInfo stage) {
      return new StageAttempt(stage.stageId(), stage.attemptNumber());
    }
  }

  /**
   * The tasks of one attempt at a barrier stage. Spark reports their failures one by one, so the
   * key names no executors.
   *
   * @param stage Spark's stage id, unique within the application
   * @param attempt number of the stage attempt, from 0
   */
  public record StageAttempt(int stage, int attempt) implements RendezvousKey {
    @Override
    public List<String> executors() {
      return List.of();
    }

    /** For example "barrier stage 3.1". */
    @Override
    public String toString() {
      return "barrier stage " + stage + "." + attempt;
    }
  }
}
