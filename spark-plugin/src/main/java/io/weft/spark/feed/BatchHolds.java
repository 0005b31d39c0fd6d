package io.weft.spark.feed;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Who keeps a batch: its epoch until the next one, and each lease. Thread-safe. */
final class BatchHolds {
  private final AtomicInteger holds = new AtomicInteger(1);
  private final Runnable end;

  /**
   * The epoch's hold.
   *
   * @param end what ends with the last hold; runs once, on the thread that lets go of it
   */
  BatchHolds(Runnable end) {
    this.end = end;
  }

  /**
   * One hold more, until it is closed.
   *
   * @throws IllegalStateException if the batch is over
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
   * Passes while somebody holds the batch.
   *
   * @throws IllegalStateException if the batch is over
   */
  void require() {
    if (isOver()) {
      throw over();
    }
  }

  boolean isOver() {
    return holds.get() == 0;
  }

  /** One hold less. */
  void letGo() {
    if (holds.getAndUpdate(count -> Math.max(0, count - 1)) == 1) {
      end.run();
    }
  }

  /** Ends all holds, with the task. */
  void endAll() {
    if (holds.getAndSet(0) > 0) {
      end.run();
    }
  }

  private static IllegalStateException over() {
    return new IllegalStateException(
        "the batch is over: it is valid until the next one, retain() keeps it longer");
  }
}
