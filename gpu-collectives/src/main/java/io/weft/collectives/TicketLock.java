package io.weft.collectives;

import io.weft.device.Deadline;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;

/**
 * Admits callers one at a time, in the order in which they took a ticket. Thread-safe. Without
 * contention a turn costs two atomic operations.
 */
final class TicketLock {
  private final AtomicLong next = new AtomicLong();
  private final Duration timeout;
  private final BooleanSupplier broken;
  private final AtomicLong serving = new AtomicLong();
  private volatile int waiting;
  private final AtomicBoolean busy = new AtomicBoolean();

  /** When the current turn last made progress. */
  private volatile long progressNanos = System.nanoTime();

  /** Runs at the end of the last turn; null until {@link #awaitIdle} has given up. */
  private final AtomicReference<Runnable> afterLast = new AtomicReference<>();

  /**
   * The first turn is free.
   *
   * @param timeout how long one turn may last without progress before the waiting callers give up
   * @param broken when true, no caller waits any more
   */
  TicketLock(Duration timeout, BooleanSupplier broken) {
    this.timeout = timeout;
    this.broken = broken;
  }

  /** Takes a ticket, the place in the order. It has to be awaited and passed, or given back. */
  long take() {
    return next.getAndIncrement();
  }

  /** Gives back the newest ticket, unused. Returns false when another one has been taken since. */
  boolean giveBack(long ticket) {
    return next.compareAndSet(ticket + 1, ticket);
  }

  /**
   * Waits for the ticket's turn.
   *
   * @return false when the turn before did not end in time, this thread was interrupted, or the
   *     owner is broken
   */
  boolean await(long ticket) {
    boolean mine = serving.get() == ticket || awaitSlowly(ticket);
    if (mine) {
      // Set before the caller checks whether the owner is broken. The owner is marked broken before
      // any thread reads this flag.
      busy.set(true);
    }
    return mine;
  }

  private synchronized boolean awaitSlowly(long ticket) {
    waiting++;
    try {
      long seen = serving.get();
      long progress = progressNanos;
      Deadline deadline = Deadline.after(timeout);
      while (serving.get() != ticket) {
        if (serving.get() != seen) {
          seen = serving.get();
          deadline = Deadline.after(timeout);
        } else if (progressNanos != progress) {
          progress = progressNanos;
          deadline = Deadline.since(progress, deadline.length().toNanos());
        }
        if (broken.getAsBoolean() || deadline.expired()) {
          return false;
        }
        wait(Math.max(1, deadline.remainingNanos() / 1_000_000L));
      }
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      waiting--;
    }
  }

  /**
   * Restarts the timeout of the waiting callers. Called by the current turn after each of its
   * steps.
   *
   * @param nanos of {@link System#nanoTime}
   */
  void progress(long nanos) {
    progressNanos = nanos;
  }

  /** Ends the current turn. */
  void pass() {
    busy.setRelease(false);
    serving.incrementAndGet();
    if (waiting > 0) {
      wakeAll();
    }
    if (afterLast.get() != null) {
      runAfterLast();
    }
  }

  /**
   * Runs an action once no turn is active: here, or on the thread whose turn ends. The owner must
   * be broken, so that no new turn starts.
   */
  void whenIdle(Runnable action) {
    afterLast.set(action);
    if (!busy.get()) {
      runAfterLast();
    }
  }

  private void runAfterLast() {
    Runnable action = afterLast.getAndSet(null);
    if (action != null) {
      action.run();
    }
  }

  /**
   * Waits until no turn is active. No new turn can start then.
   *
   * @return whether no turn was active before the deadline
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

  /** Wakes all waiting callers, which then check again whether the owner is broken. */
  synchronized void wakeAll() {
    notifyAll();
  }
}
