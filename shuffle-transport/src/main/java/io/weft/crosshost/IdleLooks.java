package io.weft.crosshost;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs checks for idle cliques periodically, from {@link #begin} to {@link #close}, also after a
 * check has failed. Owns the thread "weft-transfer-idle-…", which starts with the first check.
 * Thread-safe.
 */
final class IdleLooks implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(IdleLooks.class);

  private final String executor;
  private final Duration pause;
  private final Supplier<List<Runnable>> checks;
  private final ScheduledThreadPoolExecutor thread;

  @GuardedBy("this")
  private boolean begun;

  @GuardedBy("this")
  private boolean closed;

  /** Used by the thread only. */
  private boolean failed;

  /**
   * Creates a reaper that does not run yet.
   *
   * @param executor id for the name of the thread
   * @param pause between two runs
   * @param checks gives the checks of a run, each of them quick; only the first exception is logged
   */
  IdleLooks(String executor, Duration pause, Supplier<List<Runnable>> checks) {
    this.executor = executor;
    this.pause = pause;
    this.checks = checks;
    this.thread =
        new ScheduledThreadPoolExecutor(
            1,
            task -> {
              Thread named = new Thread(task, "weft-transfer-idle-" + executor);
              named.setDaemon(true);
              return named;
            });
  }

  /** Starts the runs, unless they were started before or this is closed. */
  synchronized void begin() {
    if (!begun && !closed) {
      begun = true;
      ScheduledFuture<?> unused =
          thread.scheduleWithFixedDelay(
              () -> run(() -> checks.get().forEach(this::run)),
              pause.toNanos(),
              pause.toNanos(),
              TimeUnit.NANOSECONDS);
    }
  }

  /** Catches all exceptions, because the scheduler drops a task that throws. */
  private void run(Runnable check) {
    try {
      check.run();
    } catch (RuntimeException | Error e) {
      if (!failed) {
        LOG.warn(
            "[executor {}] a check for idle cliques failed; the checks go on, and later failures"
                + " are not logged",
            executor,
            e);
      }
      failed = true;
    }
  }

  /** Ends the runs and interrupts one that is under way. */
  @Override
  public synchronized void close() {
    closed = true;
    List<Runnable> unused = thread.shutdownNow();
  }
}
