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

  /** The stage of the task, and in milliseconds since 1970 the death and its last task's end. */
  private volatile int killedStage;

  private volatile long died;
  private volatile long lastEnd;
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
    // Events of the last tasks of the previous job may still be on their way to the listeners.
    awaitEvents(cluster);
    KillAtTask killer = new KillAtTask(cluster, stage, task);
    cluster.context().addSparkListener(killer);
    return killer;
  }

  private static void awaitEvents(WeftCluster cluster) {
    try {
      cluster.context().listenerBus().waitUntilEmpty(TimeUnit.MINUTES.toMillis(3));
    } catch (TimeoutException e) {
      throw new AssertionError("the listeners have not caught up", e);
    }
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    stages.add(end.stageId());
    if (!victim.isDone() && stages.headSet(end.stageId()).size() == stage) {
      ended++;
      if (ended >= task) { // An executor that has just started is not listed yet.
        killedStage = end.stageId();
        kill(end.taskInfo().executorId());
      }
    }
    if (victim.isDone() && end.stageId() == killedStage) {
      lastEnd = Math.max(lastEnd, end.taskInfo().finishTime());
    }
  }

  private void kill(String executorId) {
    for (ExecutorProcess executor : cluster.executors()) {
      if (executor.id().equals(executorId)) {
        nanos = System.nanoTime();
        executor.kill();
        died = System.currentTimeMillis();
        victim.complete(executor);
      }
    }
  }

  /** The killed executor. */
  public ExecutorProcess victim() {
    return victim.orTimeout(3, TimeUnit.MINUTES).join();
  }

  /**
   * Whether the executor died while its stage ran: a task of the stage has ended later. The end of
   * a task is heard late, so the stage or the job may have ended before. To be called after the
   * job.
   */
  public boolean diedInStage() {
    victim();
    awaitEvents(cluster);
    return lastEnd > died;
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
