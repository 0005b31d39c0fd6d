package io.weft.spark.driver;

import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the driver's garbage collector when an executor runs out of memory. Spark frees a shuffle
 * when the driver's last reference to it is collected. A driver with a large heap may not collect
 * for hours.
 *
 * <p>Thread-safe; requests never block. Its thread exists only while it has work.
 */
public final class DriverGarbageCollector implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DriverGarbageCollector.class);
  private static final long PAUSE_NANOS = Duration.ofSeconds(10).toNanos();

  private final AtomicLong nextNanos = new AtomicLong(System.nanoTime());
  private final ExecutorService thread;

  public DriverGarbageCollector() {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(
            1,
            1,
            1,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(1),
            DriverGarbageCollector::newThread);
    pool.allowCoreThreadTimeOut(true);
    thread = pool;
  }

  private static Thread newThread(Runnable task) {
    Thread thread = new Thread(task, "weft-driver-garbage");
    thread.setDaemon(true);
    return thread;
  }

  /** Requests a collection, unless the last one was a short time ago. */
  public void collect(String executorId) {
    long next = nextNanos.get();
    long now = System.nanoTime();
    if (now - next >= 0 && nextNanos.compareAndSet(next, now + PAUSE_NANOS)) {
      LOG.info(
          "Collecting the driver's garbage: executor {} needs memory of unused shuffles",
          executorId);
      thread.execute(System::gc);
    }
  }

  @Override
  public void close() {
    thread.shutdownNow();
  }
}
