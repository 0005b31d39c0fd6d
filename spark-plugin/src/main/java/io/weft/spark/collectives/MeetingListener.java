package io.weft.spark.collectives;

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
 * Tells the meetings what Spark knows of barrier stages: which tasks run where, also those that
 * never ask for a communicator, which fail, and when a stage attempt is over. For Spark's listener
 * thread.
 */
public final class MeetingListener extends SparkListener {
  private static final int LONGEST_REASON = 300;

  private final DriverMeetings meetings;

  /** Speaks to these meetings. */
  public MeetingListener(DriverMeetings meetings) {
    this.meetings = meetings;
  }

  @Override
  public void onStageSubmitted(SparkListenerStageSubmitted submitted) {
    StageInfo stage = submitted.stageInfo();
    if (CollectionConverters.asJava(stage.rddInfos()).stream().anyMatch(RDDInfo::isBarrier)) {
      meetings.stageStarted(key(stage), stage.numTasks());
    }
  }

  @Override
  public void onTaskStart(SparkListenerTaskStart start) {
    TaskInfo task = start.taskInfo();
    meetings.taskStarted(
        new MeetingKey(start.stageId(), start.stageAttemptId()), task.partitionId(), name(task));
  }

  private static String name(TaskInfo task) {
    return TaskNames.name(task.taskId(), task.executorId(), task.host());
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    if (end.taskInfo() != null && end.reason() instanceof TaskFailedReason reason) {
      meetings.taskFailed(
          new MeetingKey(end.stageId(), end.stageAttemptId()),
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
    meetings.stageEnded(key(completed.stageInfo()));
  }

  private static MeetingKey key(StageInfo stage) {
    return new MeetingKey(stage.stageId(), stage.attemptNumber());
  }
}
