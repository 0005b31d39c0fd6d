package io.weft.spark.transfers;

import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks the driver again and again which executors are gone, from {@link #begin} to {@link #close},
 * whatever comes of it. Each of them is told of on a thread of its own: what is to be done about
 * one may wait for devices and connections, and the next must not be heard of later for that.
 * Thread-safe. Owns its threads, which begin when they are needed.
 */
final class Departures implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Departures.class);

  private final TransferDriver driver;
  private final long everyMillis;
  private final Consumer<Departure> departed;
  private final ScheduledExecutorService asker =
      Executors.newSingleThreadScheduledExecutor(named("weft-transfer-departures"));
  private final ExecutorService tellers =
      Executors.newCachedThreadPool(named("weft-transfer-departed"));
  private final AtomicBoolean begun = new AtomicBoolean();

  /** For the thread that asks. */
  private int known;

  /**
   * Does not ask yet.
   *
   * @param everyMillis how long after an answer to ask again
   * @param departed told once of each executor, on several threads; what it throws is logged
   */
  Departures(TransferDriver driver, long everyMillis, Consumer<Departure> departed) {
    this.driver = driver;
    this.everyMillis = everyMillis;
    this.departed = departed;
  }

  private static ThreadFactory named(String name) {
    return task -> {
      Thread thread = new Thread(task, name);
      thread.setDaemon(true);
      return thread;
    };
  }

  /** Begins to ask, unless that was done before. Not to be called after the end. */
  void begin() {
    if (begun.compareAndSet(false, true)) {
      ScheduledFuture<?> unused =
          asker.scheduleWithFixedDelay(this::ask, everyMillis, everyMillis, TimeUnit.MILLISECONDS);
    }
  }

  /** A scheduled task that throws would not be run again. */
  private void ask() {
    List<Departure> news;
    try {
      news = driver.departures(known);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return;
    } catch (Exception | LinkageError e) {
      LOG.debug("The driver does not say which executors are gone; it is asked again", e);
      return;
    }
    known += news.size();
    news.forEach(departure -> tellers.execute(() -> tell(departure)));
  }

  private void tell(Departure departure) {
    try {
      departed.accept(departure);
    } catch (RuntimeException | Error e) {
      LOG.error("What executor {} leaves behind was not ended", departure.executorId(), e);
    }
  }

  /** Asks no more; what is under way is interrupted. */
  @Override
  public void close() {
    asker.shutdownNow();
    tellers.shutdownNow();
  }
}
