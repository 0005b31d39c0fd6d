package io.weft.memory;

import static java.lang.Thread.currentThread;

import io.weft.memory.SpillPolicy.Plan;
import io.weft.memory.SpillPolicy.Reclaim;
import java.io.InterruptedIOException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Searches the tiers for an extent, in the way that {@link SpillPolicy} decided. Thread-safe; a
 * waiting thread holds no lock.
 */
final class ExtentSearch {
  private static final Logger LOG = LoggerFactory.getLogger(ExtentSearch.class);

  private final Tier memory;
  private final ExtentSource source;
  private final ReclaimHooks pressure;
  private final FreedMemory freed;
  private final Waiters waiters;
  private final AtomicBoolean waited = new AtomicBoolean();

  ExtentSearch(
      Tier memory, ExtentSource source, ReclaimHooks pressure, FreedMemory freed, Waiters waiters) {
    this.memory = memory;
    this.source = source;
    this.pressure = pressure;
    this.freed = freed;
    this.waiters = waiters;
  }

  /**
   * Finds an extent in the way of a plan; null when there is no room.
   *
   * @throws InterruptedIOException if the thread is interrupted while it waits; it stays
   *     interrupted
   */
  Extent find(Plan plan, int granules) throws ArenaFullException, InterruptedIOException {
    return plan.mayWait() ? await(plan, granules) : findNow(plan, plan.reclaim(), granules);
  }

  private Extent findNow(Plan plan, Reclaim reclaim, int granules) throws ArenaFullException {
    boolean shared = plan.sharedMemory();
    Extent extent = shared ? source.take(memory, granules) : null;
    boolean reclaimed = shared && extent == null && reclaim != Reclaim.NEVER && pressure.relieve();
    if (reclaimed) {
      extent = freedMemory(granules);
    }
    if (extent == null) {
      extent = overflow(plan, granules);
    }
    if (extent != null || reclaimed || reclaim != Reclaim.BEFORE_FAILURE) {
      return extent;
    }
    pressure.run();
    extent = shared ? freedMemory(granules) : null;
    return extent != null ? extent : overflow(plan, granules);
  }

  /** Finds shared memory that fills a segment; null when there is no room. */
  Extent findSegment(int granules) throws ArenaFullException {
    Extent extent = source.takeSegment(memory, granules);
    if (extent == null) {
      pressure.run();
      extent = source.takeSegment(memory, granules);
    }
    return extent;
  }

  private Extent overflow(Plan plan, int granules) throws ArenaFullException {
    return plan.overflow() == null ? null : source.take(plan.overflow(), granules);
  }

  private Extent freedMemory(int granules) {
    Extent extent = source.takeFreed(memory, granules);
    if (extent != null) {
      pressure.helped();
    }
    return extent;
  }

  /** Waits for memory that other threads free, after this thread returned what it can. */
  private Extent await(Plan plan, int granules) throws ArenaFullException, InterruptedIOException {
    Extent extent = findNow(plan, Reclaim.PACED, granules);
    if (extent == null) {
      waiters.returnMemory();
    }
    long nanos = plan.timeout().toNanos();
    long end = System.nanoTime() + nanos;
    long left = nanos;
    while (extent == null && left > 0) {
      extent = awaitOnce(plan, granules, left);
      left = end - System.nanoTime();
    }
    return extent != null ? extent : findNow(plan, plan.reclaim(), granules);
  }

  private Extent awaitOnce(Plan plan, int granules, long nanos)
      throws ArenaFullException, InterruptedIOException {
    long seen = freed.times();
    Extent extent = findNow(plan, Reclaim.PACED, granules);
    if (extent == null) {
      waiters.check();
      if (waited.compareAndSet(false, true)) {
        LOG.info(
            "{} waits until other threads free {}",
            currentThread().getName(),
            plan.overflow().name);
      }
      await(seen, Math.min(nanos, SpillPolicy.PAUSE_NANOS));
    }
    return extent;
  }

  private void await(long seen, long nanos) throws InterruptedIOException {
    try {
      freed.await(seen, nanos);
    } catch (InterruptedException e) {
      currentThread().interrupt();
      throw new InterruptedIOException("interrupted while it waited for memory");
    }
  }
}
