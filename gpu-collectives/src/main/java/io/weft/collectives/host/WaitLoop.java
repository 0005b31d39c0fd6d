package io.weft.collectives.host;

import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * How a rank waits for another: it spins, then yields, then parks for longer and longer. Once
 * spinning is over, it polls for failures and deadlines and progresses other transfers.
 *
 * <p>Where this host has more ranks than processors, the other rank may need this rank's processor,
 * so there is hardly any spinning. A parked rank oversleeps by at most a sixteenth of the time that
 * it has waited.
 *
 * <p>One thread at a time.
 */
final class WaitLoop {
  private static final int SPINS = 1000;
  private static final int SPINS_WHEN_CROWDED = 3;

  /** Polling a socket is a system call, which is slow enough on its own. */
  private static final int SPINS_ON_SOCKETS = 20;

  /**
   * The number of spins that do not read the clock, because a read takes as long as half of such a
   * wait.
   */
  private static final int UNCLOCKED = 16;

  /**
   * All these yields take longer than a rank oversleeps its first park, about 0.1 ms. Otherwise a
   * rank that waits for a parked one parks as well, and so on in turn, in every operation.
   */
  private static final int YIELDS = 2000;

  /**
   * Where ranks share processors, a yield may give the processor back to the rank that yields,
   * until it parks.
   */
  private static final int YIELDS_WHEN_CROWDED = 200;

  /** Each yield comes with system calls that poll sockets. */
  private static final int YIELDS_ON_SOCKETS = 200;

  private static final int POLL_EVERY = 64;
  private static final int POLL_EVERY_MOVES = 256;
  private static final long MIN_PARK_NANOS = 20_000;
  private static final long MAX_PARK_NANOS = 1_000_000;

  private final WaitCheck watch;
  private final int spins;
  private final int unclocked;
  private final int yields;
  private Runnable progress;
  private int rounds;
  private int moves;
  private boolean polled;
  private boolean clocked;
  private long startNanos;
  private long waitedNanos;

  /**
   * Creates the strategy of one rank.
   *
   * @param ranksOnHost the number of ranks that share the processors
   * @param onSockets whether this rank also waits for other hosts
   */
  WaitLoop(WaitCheck watch, int ranksOnHost, boolean onSockets) {
    this.watch = watch;
    if (onSockets) {
      this.spins = SPINS_ON_SOCKETS;
      this.yields = YIELDS_ON_SOCKETS;
    } else if (ranksOnHost > Runtime.getRuntime().availableProcessors()) {
      this.spins = SPINS_WHEN_CROWDED;
      this.yields = YIELDS_WHEN_CROWDED;
    } else {
      this.spins = SPINS;
      this.yields = YIELDS;
    }
    this.unclocked = Math.min(UNCLOCKED, spins);
  }

  /** Sets an action to run while waiting; null for none. */
  void setProgress(Runnable action) {
    progress = action;
  }

  /** Begins a wait, which {@link #end} must end. */
  void begin() {
    rounds = 0;
    polled = false;
    clocked = false;
  }

  /**
   * Waits for a short time.
   *
   * @throws io.weft.collectives.CollectiveException when the wait cannot succeed
   */
  @SuppressWarnings("ThreadPriorityCheck") // The other rank may need this processor.
  void idle(AwaitedRanks awaited) {
    rounds++;
    if (!clocked && rounds > unclocked) {
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
    if (rounds <= spins + yields) {
      if (rounds % POLL_EVERY == 0) {
        poll(awaited);
      }
      Thread.yield();
      return;
    }
    poll(awaited);
    LockSupport.parkNanos(parkNanos());
  }

  /**
   * Checks at once, between the parts of work that takes long.
   *
   * @throws io.weft.collectives.CollectiveException when the operation cannot succeed
   */
  void check(AwaitedRanks awaited) {
    poll(awaited);
  }

  private void poll(AwaitedRanks awaited) {
    polled = true;
    watch.check(awaited);
  }

  private long parkNanos() {
    long waited = System.nanoTime() - startNanos;
    return Math.max(MIN_PARK_NANOS, Math.min(MAX_PARK_NANOS, waited / 16));
  }

  /**
   * Resets the strategy after progress: it spins again before parking.
   *
   * @throws io.weft.collectives.CollectiveException when the operation cannot succeed; steady
   *     progress has a deadline too
   */
  void moved(AwaitedRanks awaited) {
    rounds = 0;
    moves++;
    if (moves % POLL_EVERY_MOVES == 0) {
      poll(awaited);
    }
  }

  /** Ends the wait. */
  void end() {
    if (clocked) {
      waitedNanos += System.nanoTime() - startNanos;
    }
    if (polled) {
      watch.endWait();
    }
  }

  /** Nanoseconds waited since the last call of this method, without waits of a few rounds. */
  long takeWaitedNanos() {
    long waited = waitedNanos;
    waitedNanos = 0;
    return waited;
  }

  /** The checks that a waiting rank makes. */
  interface WaitCheck {
    /**
     * Checks whether this wait can still succeed, and publishes which rank this one waits for.
     *
     * @throws io.weft.collectives.CollectiveException when a rank failed, ended or closed, this
     *     thread was interrupted, or the deadline has passed
     */
    void check(AwaitedRanks awaited);

    /** Called at the end of a wait in which {@link #check} was called. */
    void endWait();
  }

  /** Gives the ranks that a wait is for. Called only when the wait is long. */
  @FunctionalInterface
  interface AwaitedRanks {
    /** Ranks of the communicator that have not done their part yet, in order. */
    List<Integer> ranks();
  }
}
