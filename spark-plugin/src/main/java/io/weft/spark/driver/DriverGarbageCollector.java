package io.weft.spark.driver;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the driver's garbage collector when an executor runs out of memory. Spark frees a shuffle
 * when the driver's last reference to it is collected. A driver with a large heap may not collect
 * for hours.
 *
 * <p>A collection is useful if a shuffle that was registered before it has ended by the next
 * request. After each useless one the pause doubles; after {@link #MAX_USELESS} in a row it stops,
 * until a shuffle ends without it. Collections take at most a twentieth of the driver's time.
 *
 * <p>Thread-safe; requests never block. Its thread exists only while it has work.
 */
public final class DriverGarbageCollector implements AutoCloseable {
  /** Useless collections in a row after which it stops. */
  static final int MAX_USELESS = 5;

  static final Duration FIRST_PAUSE = Duration.ofSeconds(10);

  private static final Logger LOG = LoggerFactory.getLogger(DriverGarbageCollector.class);
  private static final int SHARE_OF_TIME = 20;

  private enum Decision {
    COLLECT,
    WAIT,
    STOP
  }

  private final LongSupplier clock;
  private final Runnable collector;
  private final Supplier<Set<Integer>> shuffles;
  private final ThreadPoolExecutor thread;

  private Set<Integer> before = Set.of();
  private int useless;
  private long nextNanos;
  private boolean collecting;

  /** Creates a collector of this JVM's garbage. */
  public DriverGarbageCollector() {
    this(System::nanoTime, System::gc, DriverState::shuffles);
  }

  /**
   * Creates a collector.
   *
   * @param clock nanoseconds, as of {@code System.nanoTime}
   * @param collector collects garbage
   * @param shuffles the shuffles registered with Spark
   */
  DriverGarbageCollector(LongSupplier clock, Runnable collector, Supplier<Set<Integer>> shuffles) {
    this.clock = clock;
    this.collector = collector;
    this.shuffles = shuffles;
    this.nextNanos = clock.getAsLong();
    this.thread =
        new ThreadPoolExecutor(
            1,
            1,
            1,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            DriverGarbageCollector::newThread);
    thread.allowCoreThreadTimeOut(true);
  }

  private static Thread newThread(Runnable task) {
    Thread thread = new Thread(task, "weft-driver-garbage");
    thread.setDaemon(true);
    return thread;
  }

  /** Requests a collection for an executor, unless the pause after the last one has not passed. */
  public void collect(String executorId) {
    Decision decision = decide();
    if (decision == Decision.STOP) {
      LOG.info(
          "{} collections of the driver's garbage in a row have freed no shuffle. The next one is"
              + " after a shuffle has ended.",
          MAX_USELESS);
    } else if (decision == Decision.COLLECT) {
      LOG.info(
          "Collecting the driver's garbage: executor {} needs memory of unused shuffles",
          executorId);
      try {
        thread.execute(this::run);
      } catch (RejectedExecutionException e) {
        LOG.debug("The driver ends", e);
      }
    }
  }

  /** Starts the next pause unless the last one has not passed. */
  private synchronized Decision decide() {
    long now = clock.getAsLong();
    if (collecting || now - nextNanos < 0) {
      return Decision.WAIT;
    }
    int uselessBefore = useless;
    Set<Integer> registered = shuffles.get();
    if (!before.isEmpty()) {
      boolean ended = !registered.containsAll(before);
      useless = ended ? 0 : Math.min(useless + 1, MAX_USELESS);
    }
    nextNanos = now + (FIRST_PAUSE.toNanos() << useless);
    if (useless == MAX_USELESS) {
      return uselessBefore == MAX_USELESS ? Decision.WAIT : Decision.STOP;
    }
    before = registered;
    collecting = !registered.isEmpty();
    return collecting ? Decision.COLLECT : Decision.WAIT;
  }

  private void run() {
    long start = clock.getAsLong();
    collector.run();
    long end = clock.getAsLong();
    synchronized (this) {
      nextNanos = Math.max(nextNanos, end + SHARE_OF_TIME * (end - start));
      collecting = false;
    }
  }

  synchronized boolean isCollecting() {
    return collecting;
  }

  @Override
  public void close() {
    thread.shutdownNow();
  }
}
