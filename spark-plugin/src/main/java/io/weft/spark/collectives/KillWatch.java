package io.weft.spark.collectives;

import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks periodically for killed tasks, while there are tasks. Spark marks a task of a failed
 * barrier stage as killed without an interrupt of its thread. The checking thread ends shortly
 * after the last task. Thread-safe.
 */
final class KillWatch implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(KillWatch.class);
  private static final long PERIOD_MILLIS = 100;

  private final BooleanSupplier check;
  private final ScheduledThreadPoolExecutor thread;
  private boolean scheduled;

  /**
   * Creates a watch that does not run yet.
   *
   * @param check runs one check; returns false if there are no tasks to check
   */
  KillWatch(BooleanSupplier check) {
    this.check = check;
    this.thread = new ScheduledThreadPoolExecutor(1, KillWatch::newThread);
    thread.setKeepAliveTime(1, TimeUnit.SECONDS);
    thread.allowCoreThreadTimeOut(true);
  }

  private static Thread newThread(Runnable task) {
    Thread thread = new Thread(task, "weft-collectives-watch");
    thread.setDaemon(true);
    return thread;
  }

  /** Starts the checks, which go on while there are tasks. */
  synchronized void start() {
    if (!scheduled) {
      scheduled = true;
      schedule();
    }
  }

  private void schedule() {
    try {
      var unused = thread.schedule(this::checkOnce, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException e) {
      LOG.debug("The watch is closed", e);
    }
  }

  private synchronized void checkOnce() {
    boolean more = true;
    try {
      more = check.getAsBoolean();
    } catch (RuntimeException e) {
      LOG.warn("A check for killed tasks failed; the next one may succeed", e);
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
