package io.weft.spark.rendezvous;

import io.weft.spark.rendezvous.ExecutorLosses.ExecutorLoss;
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
 * Polls the driver for lost executors, from {@link #begin} to {@link #close}. Each loss is handled
 * on a thread of its own: the handler may wait for devices and connections, and must not delay the
 * next loss. Thread-safe. Owns its threads, which start when they are needed.
 */
public final class ExecutorLossMonitor implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorLossMonitor.class);

  /** Asks the driver for losses. */
  @FunctionalInterface
  public interface Source {
    /**
     * The losses after the known ones.
     *
     * @param known the number of the last loss that the caller knows; 0 for none
     * @throws InterruptedException if the thread is interrupted
     * @throws Exception if no answer comes; a retry may succeed
     */
    List<ExecutorLoss> lossesSince(int known) throws Exception;
  }

  private final Source driver;
  private final long everyMillis;
  private final Consumer<ExecutorLoss> handler;
  private final ScheduledExecutorService poller =
      Executors.newSingleThreadScheduledExecutor(named("weft-executor-loss"));
  private final ExecutorService handlers =
      Executors.newCachedThreadPool(named("weft-executor-loss-handler"));
  private final AtomicBoolean begun = new AtomicBoolean();

  /** The number of the last known loss; only the polling thread uses it. */
  private int known;

  /**
   * Creates a monitor that does not poll yet.
   *
   * @param everyMillis the pause between two polls
   * @param handler called once for each lost executor, on several threads; its exceptions are
   *     logged
   */
  public ExecutorLossMonitor(Source driver, long everyMillis, Consumer<ExecutorLoss> handler) {
    this.driver = driver;
    this.everyMillis = everyMillis;
    this.handler = handler;
  }

  private static ThreadFactory named(String name) {
    return task -> {
      Thread thread = new Thread(task, name);
      thread.setDaemon(true);
      return thread;
    };
  }

  /** Starts to poll; later calls do nothing. Must not be called after {@link #close}. */
  public void begin() {
    if (begun.compareAndSet(false, true)) {
      ScheduledFuture<?> unused =
          poller.scheduleWithFixedDelay(
              this::poll, everyMillis, everyMillis, TimeUnit.MILLISECONDS);
    }
  }

  /** Catches every exception, because the scheduler drops a task that throws. */
  private void poll() {
    List<ExecutorLoss> found;
    try {
      found = driver.lossesSince(known);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return;
    } catch (Exception | LinkageError e) {
      LOG.debug("The driver did not answer which executors are lost; the next poll may succeed", e);
      return;
    }
    for (ExecutorLoss loss : found) {
      known = Math.max(known, loss.number());
      handlers.execute(() -> handle(loss));
    }
  }

  private void handle(ExecutorLoss loss) {
    try {
      handler.accept(loss);
    } catch (RuntimeException | Error e) {
      LOG.error("The loss of executor {} was not handled completely", loss.executorId(), e);
    }
  }

  /** Stops polling and interrupts handlers that run. */
  @Override
  public void close() {
    poller.shutdownNow();
    handlers.shutdownNow();
  }
}
