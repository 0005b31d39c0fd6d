package io.weft.collectives;

import io.weft.device.Deadline;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;

/**
 * Lets callers through one at a time in the order in which they took a ticket. Thread-safe; the way
 * through without contention is two atomic operations.
 */
final class Turns {
  private final AtomicLong next = new AtomicLong();
  private final Duration patience;
  private final BooleanSupplier broken;
  private final AtomicLong serving = new AtomicLong();
  private volatile int waiting;
  private final AtomicBoolean busy = new AtomicBoolean();

  /**
   * The first turn is free.
   *
   * @param patience how long one turn may last before those behind it give up
   * @param broken when true nobody waits any more
   */
  Turns(Duration patience, BooleanSupplier broken) {
    this.patience = patience;
    this.broken = broken;
  }

  /** A place in the order; has to be awaited and passed, or given back. */
  long take() {
    return next.getAndIncrement();
  }

  /** Gives back the newest ticket, unused. False when another one has been taken since. */
  boolean giveBack(long ticket) {
    return next.compareAndSet(ticket + 1, ticket);
  }

  /**
   * Waits for the ticket's turn.
   *
   * @return false when the turn before did not end in time, this thread was interrupted, or all is
   *     broken
   */
  boolean await(long ticket) {
    boolean mine = serving.get() == ticket || awaitSlowly(ticket);
    if (mine) {
      // Before the caller looks whether all is broken, which is set before anybody looks here.
      busy.set(true);
    }
    return mine;
  }

  private synchronized boolean awaitSlowly(long ticket) {
    waiting++;
    try {
      long seen = serving.get();
      Deadline deadline = Deadline.after(patience);
      while (serving.get() != ticket) {
        if (broken.getAsBoolean() || deadline.expired()) {
          return false;
        }
        wait(Math.max(1, deadline.remainingNanos() / 1_000_000L));
        if (serving.get() != seen) {
          seen = serving.get();
          deadline = Deadline.after(patience);
        }
      }
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      waiting--;
    }
  }

  /** Ends the turn of who has it. */
  void pass() {
    busy.setRelease(false);
    serving.incrementAndGet();
    if (waiting > 0) {
      wakeAll();
    }
  }

  /**
   * Waits until nobody has a turn, when no new one can start.
   *
   * @return whether that is so before the deadline
   */
  synchronized boolean awaitIdle(Deadline deadline) {
    boolean interrupted = false;
    waiting++;
    try {
      while (busy.get() && !deadline.expired()) {
        try {
          wait(Math.max(1, deadline.remainingNanos() / 1_000_000L));
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      return !busy.get();
    } finally {
      waiting--;
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Makes those who wait look again whether all is broken. */
  synchronized void wakeAll() {
    notifyAll();
  }
}
