package io.weft.crosshost;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Threads that encode and decode chunks beside the lanes that move them, "weft-transfer-code-…". As
 * many as there are processors at most, none while there is nothing to do; a piece of their work is
 * one chunk and waits for nothing, so no clique waits long for another one's.
 *
 * <p>Thread-safe.
 */
final class Coders implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Coders.class);
  private static final long IDLE_SECONDS = 10;
  private static final long CLOSE_PATIENCE_SECONDS = 5;

  /** A chunk takes milliseconds, a look for the largest of 2 GiB a second. */
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final TransferCounters counters;
  private final Duration patience;
  private final ThreadPoolExecutor threads;

  Coders(String executor, TransferCounters counters) {
    this(executor, counters, PATIENCE);
  }

  /**
   * Coders without threads yet.
   *
   * @param patience how long a lane waits for one chunk before its transfer fails
   */
  Coders(String executor, TransferCounters counters, Duration patience) {
    this.counters = counters;
    this.patience = patience;
    AtomicInteger number = new AtomicInteger();
    int most = Runtime.getRuntime().availableProcessors();
    this.threads =
        new ThreadPoolExecutor(
            most,
            most,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            work -> {
              String name = "weft-transfer-code-" + executor + "-" + number.getAndIncrement();
              Thread made = new Thread(work, name);
              made.setDaemon(true);
              return made;
            });
    threads.allowCoreThreadTimeOut(true);
  }

  /** How long a lane waits for one chunk. */
  Duration patience() {
    return patience;
  }

  /** Starts one chunk's work, which is counted when it is done. */
  <T> CompletableFuture<T> submit(TransferCounter done, Callable<T> chunk) {
    CompletableFuture<T> end = new CompletableFuture<>();
    threads.execute(
        () -> {
          try {
            T result = chunk.call();
            counters.increment(done);
            end.complete(result);
          } catch (Throwable e) {
            // Of any kind: who waits for the end is told.
            end.completeExceptionally(e);
          }
        });
    return end;
  }

  /** Waits a little for what is under way; the lanes have ended. */
  @Override
  public void close() {
    threads.shutdown();
    try {
      if (!threads.awaitTermination(CLOSE_PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        LOG.warn("A chunk of a transfer is still being encoded or decoded");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
