package io.weft.collectives.host;

import java.util.concurrent.locks.LockSupport;

/**
 * How a rank passes the time until another has done something: it spins, then yields, then parks
 * for longer and longer. What has to be looked at meanwhile (failures, deadlines, other transfers)
 * is looked at once spinning is over.
 *
 * <p>Where the ranks of this host are more than its processors, the other needs this one's, so
 * there is hardly any spinning. A parked rank oversleeps by at most a sixteenth of what it has
 * waited.
 *
 * <p>One thread at a time.
 */
final class Waiting {
  private static final int SPINS = 1000;
  private static final int SPINS_WHEN_CROWDED = 20;

  /** A look at a socket is a system call, long enough by itself. */
  private static final int SPINS_ON_SOCKETS = 20;

  /** So short a wait is not worth a look at the clock, which takes as long as half of it. */
  private static final int UNCLOCKED = 16;

  private static final int YIELDS = 200;
  private static final int LOOK_EVERY = 64;
  private static final int LOOK_EVERY_MOVES = 256;
  private static final long SHORTEST_PARK_NANOS = 20_000;
  private static final long LONGEST_PARK_NANOS = 1_000_000;

  private final Watch watch;
  private final int spins;
  private Runnable progress;
  private int rounds;
  private int moves;
  private boolean looked;
  private boolean clocked;
  private long startNanos;
  private long waitedNanos;

  /**
   * A way of waiting.
   *
   * @param ranksOnHost how many ranks share the processors
   * @param onSockets whether other hosts are waited for too
   */
  Waiting(Watch watch, int ranksOnHost, boolean onSockets) {
    this.watch = watch;
    if (onSockets) {
      this.spins = SPINS_ON_SOCKETS;
    } else {
      this.spins =
          ranksOnHost <= Runtime.getRuntime().availableProcessors() ? SPINS : SPINS_WHEN_CROWDED;
    }
  }

  /** What else to do while waiting; null for nothing. */
  void setProgress(Runnable action) {
    progress = action;
  }

  /** A wait begins; it has to {@link #end}. */
  void begin() {
    rounds = 0;
    looked = false;
    clocked = false;
  }

  /**
   * Passes a little time.
   *
   * @throws io.weft.collectives.fault.CollectiveException when there is no point in waiting on
   */
  @SuppressWarnings("ThreadPriorityCheck") // The other rank may need this very processor.
  void idle(Awaited awaited) {
    rounds++;
    if (!clocked && rounds > UNCLOCKED) {
      clocked = true;
      startNanos = System.nanoTime();
    }
    if (rounds <= spins) {
      Thread.onSpinWait();
      return;
    }
    if (progress != null) {
      progress.run();
    }
    if (rounds <= spins + YIELDS) {
      if (rounds % LOOK_EVERY == 0) {
        look(awaited);
      }
      Thread.yield();
      return;
    }
    look(awaited);
    LockSupport.parkNanos(parkNanos());
  }

  private void look(Awaited awaited) {
    looked = true;
    watch.look(awaited);
  }

  private long parkNanos() {
    long waited = System.nanoTime() - startNanos;
    return Math.max(SHORTEST_PARK_NANOS, Math.min(LONGEST_PARK_NANOS, waited / 16));
  }

  /**
   * Something happened: spin again before parking.
   *
   * @throws io.weft.collectives.fault.CollectiveException when there is no point in going on: also
   *     who never stands still has a deadline
   */
  void moved(Awaited awaited) {
    rounds = 0;
    moves++;
    if (moves % LOOK_EVERY_MOVES == 0) {
      look(awaited);
    }
  }

  /** The wait is over. */
  void end() {
    if (clocked) {
      waitedNanos += System.nanoTime() - startNanos;
    }
    if (looked) {
      watch.stopLooking();
    }
  }

  /** Nanoseconds waited since the last call of this, but for waits of a few rounds. */
  long takeWaitedNanos() {
    long waited = waitedNanos;
    waitedNanos = 0;
    return waited;
  }
}
