package io.weft.collectives.clique;

import java.time.Duration;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;

/** Logs one warning when work takes longer than expected. Uses one daemon thread. */
final class SlowWarning implements AutoCloseable {
  private final ScheduledThreadPoolExecutor clock;
  private final Logger log;
  private final Duration after;

  SlowWarning(Logger log, Duration after) {
    this.log = log;
    this.after = after;
    this.clock =
        new ScheduledThreadPoolExecutor(
            1,
            task -> {
              Thread thread = new Thread(task, "weft-clique-watch");
              thread.setDaemon(true);
              return thread;
            });
    clock.setRemoveOnCancelPolicy(true);
    clock.setKeepAliveTime(5, TimeUnit.SECONDS);
    clock.allowCoreThreadTimeOut(true);
  }

  /** Work that is timed until it is closed. */
  interface Watched extends AutoCloseable {
    @Override
    void close();
  }

  Watched watch(String what) {
    try {
      ScheduledFuture<?> warning =
          clock.schedule(() -> warn(what), after.toNanos(), TimeUnit.NANOSECONDS);
      return () -> warning.cancel(false);
    } catch (RejectedExecutionException e) {
      log.debug("{} begins after the cache was closed", what);
      return () -> {};
    }
  }

  private void warn(String what) {
    log.warn("{} has not ended after {} s", what, after.toMillis() / 1000.0);
  }

  @Override
  public void close() {
    clock.shutdownNow();
  }
}
