package io.weft.collectives.symmetric;

import io.weft.device.Event;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts who still uses something, its owner included, and runs an action after the last. Handles
 * may be given up while work that was enqueued before still runs: then the work's event counts.
 * Thread-safe.
 */
final class Uses {
  private final AtomicInteger count = new AtomicInteger(1);
  private final Runnable afterLast;

  Uses(Runnable afterLast) {
    this.afterLast = afterLast;
  }

  /**
   * Counts one more.
   *
   * @throws IllegalStateException after the last has ended
   */
  void retain() {
    if (count.getAndUpdate(uses -> uses == 0 ? 0 : uses + 1) == 0) {
      throw new IllegalStateException("the last use has ended already");
    }
  }

  void release() {
    if (count.decrementAndGet() == 0) {
      afterLast.run();
    }
  }

  /** Counts until the event has ended, well or not. */
  void until(Event event) {
    retain();
    event.whenReleased(this::release);
  }

  int count() {
    return count.get();
  }
}
