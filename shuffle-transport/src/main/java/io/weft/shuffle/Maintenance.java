package io.weft.shuffle;

import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs maintenance periodically, because some changes send no event to this process: readers in
 * other processes release a removed shuffle, and other executors die. Owns the thread
 * weft-maintenance, which ends at close.
 */
final class Maintenance implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Maintenance.class);
  private static final long PERIOD_MILLIS = 500;
  private static final long CLOSE_TIMEOUT_SECONDS = 20;

  private final ScheduledThreadPoolExecutor executor =
      new ScheduledThreadPoolExecutor(1, Maintenance::thread);

  /**
   * Starts the thread.
   *
   * @param work fast if there is nothing to do; may do I/O
   */
  Maintenance(Runnable work) {
    ScheduledFuture<?> unused =
        executor.scheduleWithFixedDelay(
            () -> run(work), PERIOD_MILLIS, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "weft-maintenance");
    thread.setDaemon(true);
    return thread;
  }

  private static void run(Runnable work) {
    try {
      work.run();
    } catch (RuntimeException | Error e) {
      // The next run tries again. The pool would run no more work that throws.
      LOG.warn("Maintenance of the exchange failed", e);
    }
  }

  /** Stops the thread and waits for a run in progress. */
  @Override
  public void close() {
    executor.shutdown();
    try {
      if (!executor.awaitTermination(CLOSE_TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
        LOG.warn("Maintenance of the exchange still runs after {} s", CLOSE_TIMEOUT_SECONDS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
