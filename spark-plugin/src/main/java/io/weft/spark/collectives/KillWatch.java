package io.weft.spark.collectives;

import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks every now and then whether tasks were killed, while there are any: Spark marks a task of a
 * failed barrier stage as killed without waking its thread. Its thread ends a while after the last
 * task. Thread-safe.
 */
final class KillWatch implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(KillWatch.class);
  private static final long PERIOD_MILLIS = 100;

  private final BooleanSupplier look;
  private final ScheduledThreadPoolExecutor thread;
  private boolean scheduled;

  /**
   * A watch that sleeps.
   *
   * @param look false when there is nothing more to look at
   */
  KillWatch(BooleanSupplier look) {
    this.look = look;
    this.thread = new ScheduledThreadPoolExecutor(1, KillWatch::newThread);
    thread.setKeepAliveTime(1, TimeUnit.SECONDS);
    thread.allowCoreThreadTimeOut(true);
  }

  private static Thread newThread(Runnable task) {
    Thread thread = new Thread(task, "weft-collectives-watch");
    thread.setDaemon(true);
    return thread;
  }

  /** Looks from now on, as long as there is something to look at. */
  synchronized void start() {
    if (!scheduled) {
      scheduled = true;
      schedule();
    }
  }

  private void schedule() {
    try {
      var unused = thread.schedule(this::lookOnce, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException e) {
      LOG.debug("The watch is closed", e);
    }
  }

  private synchronized void lookOnce() {
    boolean more = true;
    try {
      more = look.getAsBoolean();
    } catch (RuntimeException e) {
      LOG.warn("Looking for killed tasks failed; the next look may work", e);
    }
    scheduled = more;
    if (more) {
      schedule();
    }
  }

  @Override
  public void close() {
    thread.shutdownNow();
  }
}
