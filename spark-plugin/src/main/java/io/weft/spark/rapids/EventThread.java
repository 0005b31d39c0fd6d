package io.weft.spark.rapids;

import java.time.Duration;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The single thread that runs the callbacks of transactions and owns the state of connections, like
 * the progress thread of other transports. Thread-safe.
 */
final class EventThread implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(EventThread.class);
  private static final int CLOSE_SECONDS = 5;

  private final ScheduledThreadPoolExecutor thread;

  EventThread(String name) {
    thread =
        new ScheduledThreadPoolExecutor(
            1,
            task -> {
              Thread made = new Thread(task, name);
              made.setDaemon(true);
              return made;
            });
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    thread.setRemoveOnCancelPolicy(true);
  }

  /**
   * Queues a task. Its exceptions are logged.
   *
   * @return false if this was closed and the task does not run
   */
  boolean execute(Runnable task) {
    try {
      thread.execute(() -> run(task));
      return true;
    } catch (RejectedExecutionException e) {
      LOG.debug("An event of the shuffle transport came after its end", e);
      return false;
    }
  }

  /** Runs a task periodically. */
  void every(Duration period, Runnable task) {
    ScheduledFuture<?> unused =
        thread.scheduleWithFixedDelay(
            () -> run(task), period.toNanos(), period.toNanos(), TimeUnit.NANOSECONDS);
  }

  private static void run(Runnable task) {
    try {
      task.run();
    } catch (RuntimeException | Error e) {
      LOG.error("A task of the shuffle transport failed; the transport goes on", e);
    }
  }

  /** Runs the queued tasks and waits up to 5 s for them. */
  @Override
  public void close() {
    thread.shutdown();
    try {
      if (!thread.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS)) {
        LOG.warn("A callback of spark-rapids does not return");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
