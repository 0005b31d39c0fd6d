package io.weft.spark.rendezvous;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/** Records the executors that Spark has lost. Called on Spark's listener thread. */
public final class ExecutorLossListener extends SparkListener {
  private final ExecutorLosses losses;
  private final RendezvousService<CliquePair> cliques;

  /** Creates a listener that records losses and fails the rendezvous of lost executors. */
  public ExecutorLossListener(ExecutorLosses losses, RendezvousService<CliquePair> cliques) {
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
