package io.weft.spark.rapids;

import java.time.Duration;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one thread that runs callbacks of transactions and holds the state of connections, as the
 * progress thread does in other transports. Thread-safe.
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
   * Runs a task behind the others; what it throws is logged.
   *
   * @return false when this was closed, and the task will not run
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

  /** Runs a task again and again. */
  void every(Duration period, Runnable task) {
    ScheduledFuture<?> unused =
        thread.scheduleWithFixedDelay(
            () -> run(task), period.toNanos(), period.toNanos(), TimeUnit.NANOSECONDS);
  }

  private static void run(Runnable task) {
    try {
      task.run();
    } catch (RuntimeException | Error e) {
      LOG.error("The shuffle transport goes on after a failure of its own", e);
    }
  }

  /** Runs what was executed before; waits for it a little. */
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
