package io.weft.spark.feed;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Counts the holders of a batch: its epoch, until the next batch, and each lease. Thread-safe. */
final class BatchHolds {
  private final AtomicInteger holds = new AtomicInteger(1);
  private final Runnable end;

  /**
   * Starts with the epoch's hold.
   *
   * @param end runs once, when the last hold ends, on the thread that ends it
   */
  BatchHolds(Runnable end) {
    this.end = end;
  }

  /**
   * Adds a hold, which ends when the lease is closed.
   *
   * @throws IllegalStateException if the batch has ended
   */
  FeedLease retain() {
    if (holds.getAndUpdate(count -> count == 0 ? 0 : count + 1) == 0) {
      throw over();
    }
    AtomicBoolean closed = new AtomicBoolean();
    return () -> {
      if (!closed.getAndSet(true)) {
        letGo();
      }
    };
  }

  /**
   * Verifies that the batch is still held.
   *
   * @throws IllegalStateException if the batch has ended
   */
  void require() {
    if (isOver()) {
      throw over();
    }
  }

  boolean isOver() {
    return holds.get() == 0;
  }

  /** Ends one hold. */
  void letGo() {
    if (holds.getAndUpdate(count -> Math.max(0, count - 1)) == 1) {
      end.run();
    }
  }

  /** Ends all holds; called at the end of the task. */
  void endAll() {
    if (holds.getAndSet(0) > 0) {
      end.run();
    }
  }

  private static IllegalStateException over() {
    return new IllegalStateException(
        "the batch has ended: it is valid until the next one, retain() keeps it longer");
  }
}
