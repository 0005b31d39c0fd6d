package io.weft.collectives.symmetric;

import io.weft.device.Event;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts the uses of an object, including its owner's, and runs an action after the last one. A
 * handle may be closed while earlier work still runs; then the work's event counts as a use.
 * Thread-safe.
 */
final class UseCount {
  private final AtomicInteger count = new AtomicInteger(1);
  private final Runnable afterLast;

  UseCount(Runnable afterLast) {
    this.afterLast = afterLast;
  }

  /**
   * Adds a use.
   *
   * @throws IllegalStateException after the last use has ended
   */
  void retain() {
    if (count.getAndUpdate(uses -> uses == 0 ? 0 : uses + 1) == 0) {
      throw new IllegalStateException("the last use has already ended");
    }
  }

  void release() {
    if (count.decrementAndGet() == 0) {
      afterLast.run();
    }
  }

  /** Adds a use that lasts until the event has ended, in success or failure. */
  void until(Event event) {
    retain();
    event.whenReleased(this::release);
  }

  int count() {
    return count.get();
  }
}
