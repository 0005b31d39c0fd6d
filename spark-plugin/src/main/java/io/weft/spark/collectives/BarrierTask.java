package io.weft.spark.collectives;

import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.rendezvous.StageAttempt;
import io.weft.spark.rendezvous.StageRendezvous;
import org.apache.spark.BarrierTaskContext;

/**
 * What a communicator has to know of its task.
 *
 * @param context Spark's
 * @param executorId where it runs
 * @param host where that is
 */
record BarrierTask(BarrierTaskContext context, String executorId, String host) {
  StageAttempt key() {
    return new StageAttempt(context.stageId(), context.stageAttemptNumber());
  }

  /** Barrier stages run all their partitions, so the partition is the rank. */
  int rank() {
    return context.partitionId();
  }

  int nranks() {
    return context.getTaskInfos().length;
  }

  String name() {
    return StageRendezvous.taskName(context.taskAttemptId(), executorId, host);
  }

  /** Whether Spark has asked the task to end; it may not have interrupted the thread. */
  boolean isKilled() {
    return context.isInterrupted();
  }

  String killReason() {
    return context.getKillReason().getOrElse(() -> "its thread was interrupted");
  }

  RendezvousCall<StageAttempt> call(String round, byte[] message, String failure) {
    // An attempt runs each partition once, so a task has one visit.
    String ticket = key() + " rank " + rank();
    return new RendezvousCall<>(
        key(), ticket, rank(), nranks(), name(), round, message, failure);
  }
}
