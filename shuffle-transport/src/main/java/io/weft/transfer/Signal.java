package io.weft.transfer;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Whether a transfer waits in its reader's queue of events, so that it is there once at most. Who
 * has news writes them first and raises the signal then; who takes the transfer out of the queue
 * clears the signal first and looks for news then. So no news are missed. Thread-safe.
 */
final class Signal {
  private final AtomicBoolean raised = new AtomicBoolean();

  /** Whether the transfer is to be put into the queue now. */
  boolean raise() {
    return !raised.getAndSet(true);
  }

  /** It is out of the queue. */
  void clear() {
    raised.set(false);
  }
}
