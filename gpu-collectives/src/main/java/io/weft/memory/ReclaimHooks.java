package io.weft.memory;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The reclaim hooks, which free memory when shared memory is full. One thread at a time runs them;
 * other threads that need memory wait until that thread has finished. Hooks that freed nothing
 * useful rest for {@link SpillPolicy#PAUSE_NANOS}. Thread-safe.
 */
final class ReclaimHooks {
  private static final Logger LOG = LoggerFactory.getLogger(ReclaimHooks.class);

  private final LongSupplier clock;
  private final SingleFlight flights = new SingleFlight();
  private final List<Runnable> hooks = new CopyOnWriteArrayList<>();
  private volatile long nextNanos;

  /**
   * Starts without hooks.
   *
   * @param clock a clock such as {@link System#nanoTime}
   */
  ReclaimHooks(LongSupplier clock) {
    this.clock = clock;
    this.nextNanos = clock.getAsLong();
  }

  void add(Runnable hook) {
    hooks.add(hook);
  }

  /**
   * Runs the hooks, unless they rest after a useless run.
   *
   * @return whether they ran
   */
  boolean relieve() throws ArenaFullException {
    if (clock.getAsLong() - nextNanos < 0) {
      return false;
    }
    run();
    return true;
  }

  /** Runs the hooks even if they rest, before an allocation fails. */
  void run() throws ArenaFullException {
    if (hooks.isEmpty()) {
      return;
    }
    SingleFlight.Flight flight = flights.enter();
    if (flight != null) {
      flight.awaitLanding("the reclaim hooks");
      return;
    }
    try {
      hooks.forEach(ReclaimHooks::run);
    } finally {
      nextNanos = clock.getAsLong() + SpillPolicy.PAUSE_NANOS;
      flights.land(true);
    }
  }

  /** Notes that the hooks freed enough: they do not rest before the next shortage. */
  void helped() {
    nextNanos = clock.getAsLong();
  }

  private static void run(Runnable hook) {
    try {
      hook.run();
    } catch (RuntimeException e) {
      // The allocation can still be served from another tier.
      LOG.warn("A reclaim hook of the arena failed", e);
    }
  }
}
