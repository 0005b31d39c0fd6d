package io.weft.spark.collectives;

import org.apache.spark.BarrierTaskContext;

/**
 * What a communicator has to know of its task.
 *
 * @param context Spark's
 * @param executorId where it runs
 * @param host where that is
 */
record BarrierTask(BarrierTaskContext context, String executorId, String host) {
  MeetingKey key() {
    return new MeetingKey(context.stageId(), context.stageAttemptNumber());
  }

  /** Barrier stages run all their partitions, so the partition is the rank. */
  int rank() {
    return context.partitionId();
  }

  int nranks() {
    return context.getTaskInfos().length;
  }

  String name() {
    return TaskNames.name(context.taskAttemptId(), executorId, host);
  }

  /** Whether Spark has asked the task to end; it may not have interrupted the thread. */
  boolean isKilled() {
    return context.isInterrupted();
  }

  String killReason() {
    return context.getKillReason().getOrElse(() -> "its thread was interrupted");
  }

  MeetingCall call(String round, byte[] message, String failure) {
    return new MeetingCall(key(), rank(), nranks(), name(), round, message, failure);
  }
}
