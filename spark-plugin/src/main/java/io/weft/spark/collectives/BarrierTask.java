package io.weft.spark.collectives;

import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.rendezvous.StageRendezvous;
import io.weft.spark.rendezvous.StageRendezvous.StageAttempt;
import org.apache.spark.BarrierTaskContext;

/**
 * The barrier task of a communicator.
 *
 * @param context Spark's context of the task
 * @param executorId id of its executor
 * @param host of the executor
 */
record BarrierTask(BarrierTaskContext context, String executorId, String host) {
  StageAttempt key() {
    return new StageAttempt(context.stageId(), context.stageAttemptNumber());
  }

  /** The rank, which is the partition: barrier stages run all their partitions. */
  int rank() {
    return context.partitionId();
  }

  int nranks() {
    return context.getTaskInfos().length;
  }

  String name() {
    return StageRendezvous.taskName(context.taskAttemptId(), executorId, host);
  }

  /** Whether Spark has killed the task, perhaps without an interrupt of its thread. */
  boolean isKilled() {
    return context.isInterrupted();
  }

  String killReason() {
    return context.getKillReason().getOrElse(() -> "its thread was interrupted");
  }

  RendezvousCall<StageAttempt> call(String round, byte[] message, String failure) {
    // An attempt runs each partition once, so a task has one visit.
    String ticket = key() + " rank " + rank();
    return new RendezvousCall<>(key(), ticket, rank(), nranks(), name(), round, message, failure);
  }
}
