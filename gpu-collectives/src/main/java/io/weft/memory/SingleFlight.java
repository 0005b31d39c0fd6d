package io.weft.memory;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Lets one thread do slow work while the other threads that need its outcome wait. The thread for
 * which {@link #enter} returns null leads and must call {@link #land}. The others {@link
 * Flight#await} the flight that they get.
 */
final class SingleFlight {
  private final AtomicReference<Flight> current = new AtomicReference<>();

  /** Returns null when the caller leads, else the flight to wait for. */
  Flight enter() {
    return current.compareAndExchange(null, new Flight());
  }

  /** Ends the flight that the caller leads. */
  void land(boolean outcome) {
    current.getAndSet(null).outcome.complete(outcome);
  }

  static final class Flight {
    /** The longest wait for another thread that creates a segment or runs the reclaim hooks. */
    private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(120);

    private final String leader = Thread.currentThread().getName();
    private final CompletableFuture<Boolean> outcome = new CompletableFuture<>();

    /** The thread that does the work. */
    String leader() {
      return leader;
    }

    /** As {@link #await}; an error names the waiting thread, the work and the leader. */
    boolean awaitLanding(String what) throws ArenaFullException {
      try {
        return await(TIMEOUT_NANOS);
      } catch (TimeoutException e) {
        throw new ArenaFullException(
            Thread.currentThread().getName()
                + " waited "
                + TimeUnit.NANOSECONDS.toSeconds(TIMEOUT_NANOS)
                + " s for "
                + what
                + " from "
                + leader());
      }
    }

    /** Waits through interrupts, which stay set: the leader's work is short and bounded. */
    boolean await(long nanos) throws TimeoutException {
      long end = System.nanoTime() + nanos;
      boolean interrupted = false;
      try {
        while (true) {
          try {
            return outcome.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
          } catch (InterruptedException e) {
            interrupted = true;
          }
        }
      } catch (ExecutionException e) {
        throw new IllegalStateException("a flight ends with an outcome", e);
      } finally {
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    }
  }
}
