package io.weft.memory;

import static java.lang.Thread.currentThread;

import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks for an extent in shared memory, and where that is full asks the hooks and goes on to
 * another tier. Thread-safe; nothing is held while somebody waits.
 */
final class ExtentSearch {
  private static final Logger LOG = LoggerFactory.getLogger(ExtentSearch.class);

  private final Tier memory;
  private final ExtentSource source;
  private final Pressure pressure;
  private final FreedMemory freed;
  private final Waiters waiters;
  private final AtomicBoolean waited = new AtomicBoolean();

  ExtentSearch(
      Tier memory, ExtentSource source, Pressure pressure, FreedMemory freed, Waiters waiters) {
    this.memory = memory;
    this.source = source;
    this.pressure = pressure;
    this.freed = freed;
    this.waiters = waiters;
  }

  /** Without asking anybody for room; null where there is none. */
  Extent take(Tier tier, int granules) throws ArenaFullException {
    return source.take(tier, granules);
  }

  /** In shared memory, else in the second tier. Null where both are full, also after the hooks. */
  Extent find(Tier second, int granules) throws ArenaFullException {
    Extent extent = source.take(memory, granules);
    boolean asked = extent == null && pressure.relieve();
    if (asked) {
      extent = freedMemory(granules);
    }
    if (extent == null) {
      extent = source.take(second, granules);
    }
    return extent != null || asked ? extent : lastResort(second, granules);
  }

  private Extent freedMemory(int granules) {
    Extent extent = source.takeFreed(memory, granules);
    if (extent != null) {
      pressure.helped();
    }
    return extent;
  }

  /** The hooks are asked before anything is refused, even if it is of no use most of the time. */
  private Extent lastResort(Tier second, int granules) throws ArenaFullException {
    pressure.run();
    Extent extent = freedMemory(granules);
    return extent != null ? extent : source.take(second, granules);
  }

  /** Disk, for those who ask for nothing else; null where it is full, also after the hooks. */
  Extent findDisk(Tier disk, int granules) throws ArenaFullException {
    Extent extent = source.take(disk, granules);
    if (extent == null) {
      pressure.run();
      extent = source.take(disk, granules);
    }
    return extent;
  }

  /** As {@link #find}, but the hooks are asked only once a shortage, not for each that finds it. */
  Extent glance(Tier second, int granules) throws ArenaFullException {
    Extent extent = source.take(memory, granules);
    if (extent == null && pressure.relieve()) {
      extent = freedMemory(granules);
    }
    return extent != null ? extent : source.take(second, granules);
  }

  /**
   * As {@link #find}, and waits for what others give back, after this thread gave back what it can.
   *
   * @throws InterruptedIOException if the thread is interrupted, which it stays
   */
  Extent await(Tier second, int granules, Duration patience)
      throws ArenaFullException, InterruptedIOException {
    Extent extent = glance(second, granules);
    if (extent == null) {
      waiters.giveWay();
    }
    long end = System.nanoTime() + patience.toNanos();
    long left = patience.toNanos();
    while (extent == null && left > 0) {
      extent = awaitOnce(second, granules, left);
      left = end - System.nanoTime();
    }
    return extent != null ? extent : find(second, granules);
  }

  private Extent awaitOnce(Tier second, int granules, long nanos)
      throws ArenaFullException, InterruptedIOException {
    long seen = freed.times();
    Extent extent = glance(second, granules);
    if (extent == null) {
      waiters.check();
      if (waited.compareAndSet(false, true)) {
        LOG.info("{} waits for {} that others give back", currentThread().getName(), second.name);
      }
      await(seen, Math.min(nanos, Pressure.PAUSE_NANOS));
    }
    return extent;
  }

  private void await(long seen, long nanos) throws InterruptedIOException {
    try {
      freed.await(seen, nanos);
    } catch (InterruptedException e) {
      currentThread().interrupt();
      throw new InterruptedIOException("interrupted waiting for memory that others give back");
    }
  }
}
