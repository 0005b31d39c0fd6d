package io.weft.transfer;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Whether a request is in its reader's event queue, so that it is queued at most once. A producer
 * first changes the state and then raises the signal. The consumer first clears the signal and then
 * reads the state. So no change is missed. Thread-safe.
 */
final class Signal {
  private final AtomicBoolean raised = new AtomicBoolean();

  /** Raises the signal. Returns whether the request must be queued now. */
  boolean raise() {
    return !raised.getAndSet(true);
  }

  /** Clears the signal after the request was taken out of the queue. */
  void clear() {
    raised.set(false);
  }
}
