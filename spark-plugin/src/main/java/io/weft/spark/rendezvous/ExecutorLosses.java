package io.weft.spark.rendezvous;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The executors that Spark has lost, in the order of the reports. Thread-safe. */
public final class ExecutorLosses {
  private final List<ExecutorLoss> losses = new ArrayList<>();

  /** Adds a loss. Returns false if the loss of this executor is known. */
  synchronized boolean add(ExecutorLoss loss) {
    if (reason(loss.executorId()).isPresent()) {
      return false;
    }
    losses.add(loss);
    return true;
  }

  /** Why an executor is lost; empty if it is not lost. */
  synchronized Optional<String> reason(String executorId) {
    return losses.stream()
        .filter(loss -> loss.executorId().equals(executorId))
        .map(loss -> "executor " + executorId + " was lost: " + loss.reason())
        .findFirst();
  }

  /**
   * The losses that an executor does not know yet.
   *
   * @param known how many losses the executor knows
   */
  public synchronized List<ExecutorLoss> since(int known) {
    return new ArrayList<>(
        losses.subList(Math.min(Math.max(known, 0), losses.size()), losses.size()));
  }

  /**
   * The loss of an executor. Spark never uses its id again.
   *
   * @param executorId Spark's executor id
   * @param reason as Spark reported it
   */
  public record ExecutorLoss(String executorId, String reason) implements Serializable {}
}
