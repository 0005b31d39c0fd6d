package io.weft.spark.rendezvous;

import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/**
 * The last executors that Spark has lost, at most {@link #MAX}, in the order of the reports.
 * Executors ask often, so an earlier loss is known to all that were there. Thread-safe.
 */
public final class ExecutorLosses {
  /** The number of losses that are kept. */
  static final int MAX = 1000;

  private final Map<String, ExecutorLoss> losses = new LinkedHashMap<>();
  private int added;

  /** Adds a loss. Returns false if the loss of this executor is known. */
  synchronized boolean add(String executorId, String reason) {
    if (losses.containsKey(executorId)) {
      return false;
    }
    losses.put(executorId, new ExecutorLoss(++added, executorId, reason));
    if (losses.size() > MAX) {
      losses.remove(losses.keySet().iterator().next());
    }
    return true;
  }

  /** Why an executor is lost; empty if it is not lost, or was lost long ago. */
  synchronized Optional<String> reason(String executorId) {
    return Optional.ofNullable(losses.get(executorId))
        .map(loss -> "executor " + executorId + " was lost: " + loss.reason());
  }

  /**
   * The losses that an executor does not know yet.
   *
   * @param known the number of the last loss that the executor knows; 0 for none
   */
  public synchronized List<ExecutorLoss> since(int known) {
    return losses.values().stream().filter(loss -> loss.number() > known).toList();
  }

  /** Records the losses that Spark reports. Called on Spark's listener thread. */
  public static final class Listener extends SparkListener {
    private final ExecutorLosses losses;
    private final RendezvousService<CliquePair> cliques;

    /** Creates a listener that records losses and fails the rendezvous of lost executors. */
    public Listener(ExecutorLosses losses, RendezvousService<CliquePair> cliques) {
      this.losses = losses;
      this.cliques = cliques;
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
      String executor = removed.executorId();
      if (losses.add(executor, removed.reason())) {
        losses.reason(executor).ifPresent(reason -> cliques.executorLost(executor, reason));
      }
    }
  }

  /**
   * The loss of an executor. Spark never uses its id again.
   *
   * @param number of the loss in the application, from 1
   * @param executorId Spark's executor id
   * @param reason as Spark reported it
   */
  public record ExecutorLoss(int number, String executorId, String reason)
      implements Serializable {}
}
