package io.weft.exchange;

import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Does now and then what nothing in this process gives an occasion for: the readers of a removed
 * shuffle let go of it in their own processes, and other executors die, without telling anybody
 * here. Owns the thread weft-upkeep; closing ends it.
 */
final class Upkeep implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Upkeep.class);
  private static final long PERIOD_MILLIS = 500;
  private static final long PATIENCE_SECONDS = 20;

  private final ScheduledThreadPoolExecutor executor =
      new ScheduledThreadPoolExecutor(1, Upkeep::thread);

  /**
   * Starts the thread.
   *
   * @param work quick when there is nothing to do; may do I/O
   */
  Upkeep(Runnable work) {
    ScheduledFuture<?> unused =
        executor.scheduleWithFixedDelay(
            () -> run(work), PERIOD_MILLIS, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "weft-upkeep");
    thread.setDaemon(true);
    return thread;
  }

  private static void run(Runnable work) {
    try {
      work.run();
    } catch (RuntimeException e) {
      // It is tried again.
      LOG.warn("Upkeep of the exchange failed", e);
    }
  }

  /** Waits for a round that is under way. */
  @Override
  public void close() {
    executor.shutdown();
    try {
      if (!executor.awaitTermination(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        LOG.warn("Upkeep of the exchange still runs after {} s", PATIENCE_SECONDS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
