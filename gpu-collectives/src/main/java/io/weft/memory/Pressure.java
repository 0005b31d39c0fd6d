package io.weft.memory;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The hooks that are asked for memory when there is none. One thread at a time runs them, the
 * others that need memory wait for it. While a shortage lasts that they cannot end they are asked
 * now and then only: they look at folders, and whoever needs memory then needs it for every chunk.
 * Thread-safe.
 */
final class Pressure {
  /** How long hooks that freed nothing of use are left alone. */
  static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private static final Logger LOG = LoggerFactory.getLogger(Pressure.class);

  private final LongSupplier clock;
  private final SingleFlight flights = new SingleFlight();
  private final List<Runnable> hooks = new CopyOnWriteArrayList<>();
  private volatile long nextNanos;

  /** Without hooks. The clock is {@link System#nanoTime}'s kind. */
  Pressure(LongSupplier clock) {
    this.clock = clock;
    this.nextNanos = clock.getAsLong();
  }

  void add(Runnable hook) {
    hooks.add(hook);
  }

  /**
   * Runs the hooks, unless they ran a moment ago and that was no help.
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

  /** Runs the hooks: for an allocation that fails otherwise. */
  void run() throws ArenaFullException {
    if (hooks.isEmpty()) {
      return;
    }
    SingleFlight.Flight flight = flights.enter();
    if (flight != null) {
      flight.awaitLanding("the hooks that free memory");
      return;
    }
    try {
      hooks.forEach(Pressure::run);
    } finally {
      nextNanos = clock.getAsLong() + PAUSE_NANOS;
      flights.land(true);
    }
  }

  /** The hooks made the room that was needed: the next shortage is another one. */
  void helped() {
    nextNanos = clock.getAsLong();
  }

  private static void run(Runnable hook) {
    try {
      hook.run();
    } catch (RuntimeException e) {
      // The allocation can still be served from disk.
      LOG.warn("A hook that frees arena memory failed", e);
    }
  }
}
