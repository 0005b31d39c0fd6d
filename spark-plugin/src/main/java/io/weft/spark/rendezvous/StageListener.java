package io.weft.spark.rendezvous;

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
 * Reports Spark's events about barrier stages to their rendezvous: the start of an attempt, where
 * its tasks run, which tasks fail, and the end of the attempt. Called on Spark's listener thread.
 */
public final class StageListener extends SparkListener {
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
        new StageAttempt(start.stageId(), start.stageAttemptId()), task.partitionId(), name(task));
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
