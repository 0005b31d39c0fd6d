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
 * Looks again and again, from {@link #begin} to {@link #close}, whatever comes of a look. Owns the
 * thread "weft-transfer-idle-…", which there is from the beginning on. Thread-safe.
 */
final class IdleLooks implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(IdleLooks.class);

  private final String executor;
  private final Duration pause;
  private final Supplier<List<Runnable>> looks;
  private final ScheduledThreadPoolExecutor thread;

  @GuardedBy("this")
  private boolean begun;

  @GuardedBy("this")
  private boolean closed;

  /** For the thread. */
  private boolean failed;

  /**
   * Does not look yet.
   *
   * @param executor whose thread it is
   * @param pause between two looks
   * @param looks what a look consists of then, each quick; what one throws is logged the first time
   */
  IdleLooks(String executor, Duration pause, Supplier<List<Runnable>> looks) {
    this.executor = executor;
    this.pause = pause;
    this.looks = looks;
    this.thread =
        new ScheduledThreadPoolExecutor(
            1,
            task -> {
              Thread named = new Thread(task, "weft-transfer-idle-" + executor);
              named.setDaemon(true);
              return named;
            });
  }

  /** Begins, unless that was done before or this is closed. */
  synchronized void begin() {
    if (!begun && !closed) {
      begun = true;
      ScheduledFuture<?> unused =
          thread.scheduleWithFixedDelay(
              () -> look(() -> looks.get().forEach(this::look)),
              pause.toNanos(),
              pause.toNanos(),
              TimeUnit.NANOSECONDS);
    }
  }

  /** A scheduled task that throws would not be run again. */
  private void look(Runnable look) {
    try {
      look.run();
    } catch (RuntimeException | Error e) {
      if (!failed) {
        LOG.warn(
            "[executor {}] looking for idle cliques failed; it goes on, and this is said once",
            executor,
            e);
      }
      failed = true;
    }
  }

  /** Looks no more; one that is under way is interrupted. */
  @Override
  public synchronized void close() {
    closed = true;
    List<Runnable> unused = thread.shutdownNow();
  }
}
