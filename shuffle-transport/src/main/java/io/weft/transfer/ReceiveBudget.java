package io.weft.transfer;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Bounds the bytes that all readers of an executor have asked for and not yet used. A reader with
 * nothing under way never waits for the others: its one request is granted, whatever there is left.
 * So the readers cannot hold each other up, and there is one request more for each of them at most.
 * Thread-safe.
 */
final class ReceiveBudget {
  private final long mostBytes;
  private final AtomicLong bytes = new AtomicLong();

  /** Starts empty. */
  ReceiveBudget(long mostBytes) {
    this.mostBytes = mostBytes;
  }

  /**
   * Takes bytes if there are as many left.
   *
   * @return whether it did
   */
  boolean take(long wanted) {
    long now = bytes.get();
    while (now + wanted <= mostBytes) {
      if (bytes.compareAndSet(now, now + wanted)) {
        return true;
      }
      now = bytes.get();
    }
    return false;
  }

  /** Takes bytes also where there are none left. */
  void force(long wanted) {
    bytes.addAndGet(wanted);
  }

  /** Gives back what was taken. */
  void give(long taken) {
    bytes.addAndGet(-taken);
  }

  /** Bytes taken now. */
  long bytes() {
    return bytes.get();
  }
}
