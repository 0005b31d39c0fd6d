package io.weft.collectives.symmetric;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.InPlaceRegions;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * Waits until a counter in mapped memory has reached a value. It spins, then yields, then parks for
 * longer and longer, at most a sixteenth of the time waited. Counters only count up and wrap
 * around, so a value is reached if the difference is not negative: a peer may be ahead.
 *
 * <p>Ends early if the communicator or the awaited rank has failed. Thread-safe.
 */
final class SignalWait {
  private static final int SPINS = 1000;
  private static final int SPINS_WHEN_CROWDED = 20;
  private static final int YIELDS = 100;
  private static final long MIN_PARK_NANOS = 20_000;
  private static final long MAX_PARK_NANOS = 1_000_000;
  private static final long LIVENESS_NANOS = 50_000_000;

  private final Communicator communicator;
  private final int spins;

  SignalWait(Communicator communicator) {
    this.communicator = communicator;
    this.spins =
        communicator.nranks() <= Runtime.getRuntime().availableProcessors()
            ? SPINS
            : SPINS_WHEN_CROWDED;
  }

  static boolean reached(int counter, int value) {
    return counter - value >= 0;
  }

  /**
   * Waits for one counter. Everything that its writer wrote before is visible afterwards.
   *
   * @param peer the rank that raises it
   * @param what for messages, such as "signal 3 of window #2 to reach 7"
   * @throws CollectiveException naming both ranks
   */
  void await(long address, int value, int peer, Deadline deadline, Supplier<String> what) {
    for (int i = 0; i < spins; i++) {
      if (reached(Memory.getIntAcquire(address), value)) {
        return;
      }
      Thread.onSpinWait();
    }
    awaitSlowly(address, value, peer, deadline, what);
  }

  @SuppressWarnings("ThreadPriorityCheck") // The other rank may need this processor.
  private void awaitSlowly(
      long address, int value, int peer, Deadline deadline, Supplier<String> what) {
    long start = System.nanoTime();
    long lastLook = start;
    for (int round = 0; !reached(Memory.getIntAcquire(address), value); round++) {
      if (round < YIELDS) {
        Thread.yield();
        continue;
      }
      long now = System.nanoTime();
      boolean thorough = now - lastLook > LIVENESS_NANOS;
      lastLook = thorough ? now : lastLook;
      Optional<CollectiveException> end = end(peer, deadline, thorough);
      // A signal counts if the peer raised it before it ended.
      if (end.isPresent() && !reached(Memory.getIntAcquire(address), value)) {
        throw describe(end.get(), Memory.getIntAcquire(address), peer, what);
      }
      LockSupport.parkNanos(Math.max(MIN_PARK_NANOS, Math.min(MAX_PARK_NANOS, (now - start) / 16)));
    }
  }

  private Optional<CollectiveException> end(int peer, Deadline deadline, boolean thorough) {
    if (Thread.currentThread().isInterrupted()) {
      return Optional.of(
          new CollectiveException(Kind.ABORTED, List.of(communicator.rank()), "interrupted"));
    }
    if (deadline.expired()) {
      return Optional.of(
          new CollectiveException(Kind.TIMEOUT, List.of(peer), "it did not within " + deadline));
    }
    if (thorough) {
      return communicator.failure().or(() -> peerFailure(peer));
    }
    return Optional.empty();
  }

  private Optional<CollectiveException> peerFailure(int peer) {
    return communicator instanceof InPlaceRegions regions
        ? regions.peerFailure(peer)
        : Optional.empty();
  }

  private CollectiveException describe(
      CollectiveException end, int counter, int peer, Supplier<String> what) {
    return new CollectiveException(
        end.kind(),
        end.ranks(),
        "rank "
            + communicator.rank()
            + " waited for rank "
            + peer
            + " to raise "
            + what.get()
            + "; it is at "
            + counter
            + ": "
            + end.getMessage(),
        end);
  }
}
