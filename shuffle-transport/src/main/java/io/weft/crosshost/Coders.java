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
 * A pool of threads "weft-transfer-code-…" that encode and decode chunks while lanes move other
 * chunks. It has at most one thread for each processor, and none while it is idle. One task is one
 * chunk and never blocks, so no clique waits long for another.
 *
 * <p>Thread-safe.
 */
final class Coders implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Coders.class);
  private static final long IDLE_SECONDS = 10;
  private static final long CLOSE_TIMEOUT_SECONDS = 5;

  /** A chunk takes milliseconds; finding the largest element of 2 GiB takes a second. */
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private final TransferCounters counters;
  private final Duration timeout;
  private final ThreadPoolExecutor threads;

  Coders(String executor, TransferCounters counters) {
    this(executor, counters, TIMEOUT);
  }

  /**
   * Creates coders without threads.
   *
   * @param timeout how long a lane waits for one chunk before its transfer fails
   */
  Coders(String executor, TransferCounters counters, Duration timeout) {
    this.counters = counters;
    this.timeout = timeout;
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
  Duration timeout() {
    return timeout;
  }

  /** Starts the work on one chunk, and counts it when it is done. */
  <T> CompletableFuture<T> submit(TransferCounter done, Callable<T> chunk) {
    CompletableFuture<T> end = new CompletableFuture<>();
    threads.execute(
        () -> {
          try {
            T result = chunk.call();
            counters.increment(done);
            end.complete(result);
          } catch (Throwable e) {
            // Every failure goes to the thread that waits for the chunk.
            end.completeExceptionally(e);
          }
        });
    return end;
  }

  /** Waits up to 5 s for chunks under way. The lanes have ended before. */
  @Override
  public void close() {
    threads.shutdown();
    try {
      if (!threads.awaitTermination(CLOSE_TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
        LOG.warn("A chunk of a transfer is still being encoded or decoded");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
