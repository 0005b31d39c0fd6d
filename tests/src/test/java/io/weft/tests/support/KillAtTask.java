package io.weft.tests.support;

import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** Kills the executor that has just ended a certain task of the next job. */
public final class KillAtTask extends SparkListener implements AutoCloseable {
  private final WeftCluster cluster;
  private final int stage;
  private final int task;
  private final TreeSet<Integer> stages = new TreeSet<>();
  private final CompletableFuture<ExecutorProcess> victim = new CompletableFuture<>();
  private volatile long nanos;
  private int ended;

  private KillAtTask(WeftCluster cluster, int stage, int task) {
    this.cluster = cluster;
    this.stage = stage;
    this.task = task;
  }

  /**
   * Starts to listen for the task.
   *
   * @param stage which stage of the job, 0 for the first that ends tasks
   * @param task the number of the task in the order of their ends, 1 for the first
   */
  public static KillAtTask arm(WeftCluster cluster, int stage, int task) {
    try {
      // Events of the last tasks of the previous job may still be on their way to the listeners.
      cluster.context().listenerBus().waitUntilEmpty(TimeUnit.MINUTES.toMillis(3));
    } catch (TimeoutException e) {
      throw new AssertionError("the listeners have not caught up", e);
    }
    KillAtTask killer = new KillAtTask(cluster, stage, task);
    cluster.context().addSparkListener(killer);
    return killer;
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    stages.add(end.stageId());
    if (!victim.isDone() && stages.headSet(end.stageId()).size() == stage) {
      ended++;
      if (ended == task) {
        kill(end.taskInfo().executorId());
      }
    }
  }

  private void kill(String executorId) {
    for (ExecutorProcess executor : cluster.executors()) {
      if (executor.id().equals(executorId)) {
        nanos = System.nanoTime();
        executor.kill();
        victim.complete(executor);
      }
    }
  }

  /** The killed executor. */
  public ExecutorProcess victim() {
    return victim.orTimeout(3, TimeUnit.MINUTES).join();
  }

  /** When the executor was killed, as of {@code System.nanoTime}. */
  public long nanos() {
    victim();
    return nanos;
  }

  @Override
  public void close() {
    cluster.context().removeSparkListener(this);
  }
}
