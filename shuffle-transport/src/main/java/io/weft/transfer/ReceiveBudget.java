package io.weft.transfer;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Limits the bytes that all readers of an executor have requested and not yet used. A reader
 * without an outstanding request never waits: it gets one request even above the limit. So readers
 * cannot deadlock, and the limit is exceeded by at most one request per reader. Thread-safe.
 */
final class ReceiveBudget {
  private final long maxBytes;
  private final AtomicLong bytes = new AtomicLong();

  /** Starts empty. */
  ReceiveBudget(long maxBytes) {
    this.maxBytes = maxBytes;
  }

  /* * Reserves bytes if enough are left.
   *
   * @return whether it reserved them
   */
  boolean take(long wanted) {
    long now = bytes.get();
    while (now + wanted <= maxBytes) {
      if (bytes.compareAndSet(now, now + wanted)) {
        return true;
      }
      now = bytes.get();
    }
    return false;
  }

  /** Reserves bytes even above the limit. */
  void force(long wanted) {
    bytes.addAndGet(wanted);
  }

  /** Returns reserved bytes. */
  void give(long taken) {
    bytes.addAndGet(-taken);
  }

  /** The bytes that are reserved now. */
  long bytes() {
    return bytes.get();
  }
}
