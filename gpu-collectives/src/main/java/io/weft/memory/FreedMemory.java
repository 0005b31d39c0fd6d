package io.weft.memory;

import java.util.concurrent.TimeUnit;

/** Tells those who wait for memory that some was given back. Thread-safe. */
final class FreedMemory {
  /** Guarded by this. */
  private long times;

  /** Guarded by this. */
  private int waiting;

  /** How often something was given back so far. To be asked for before one looks for memory. */
  synchronized long times() {
    return times;
  }

  /** Something was given back, or there is no more use in waiting. */
  synchronized void freed() {
    times++;
    if (waiting > 0) {
      notifyAll();
    }
  }

  /**
   * Waits until something has been given back since, or for so long.
   *
   * @param seen what {@link #times} returned
   */
  synchronized void await(long seen, long nanos) throws InterruptedException {
    long end = System.nanoTime() + nanos;
    long left = nanos;
    waiting++;
    try {
      while (times == seen && left > 0) {
        TimeUnit.NANOSECONDS.timedWait(this, left);
        left = end - System.nanoTime();
      }
    } finally {
      waiting--;
    }
  }
}
