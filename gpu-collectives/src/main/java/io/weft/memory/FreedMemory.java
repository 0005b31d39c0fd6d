package io.weft.memory;

import java.util.concurrent.TimeUnit;

/** Wakes threads that wait for memory when memory is freed. Thread-safe. */
final class FreedMemory {
  /** Guarded by this. */
  private long times;

  /** Guarded by this. */
  private int waiting;

  /** The number of times memory was freed. Read it before a search for memory. */
  synchronized long times() {
    return times;
  }

  /** Counts freed memory, or the end of the arena, and wakes the waiting threads. */
  synchronized void freed() {
    times++;
    if (waiting > 0) {
      notifyAll();
    }
  }

  /**
   * Waits until memory is freed or the time is over.
   *
   * @param seen the earlier result of {@link #times}
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
