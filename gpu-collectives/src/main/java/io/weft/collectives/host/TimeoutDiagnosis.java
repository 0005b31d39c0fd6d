package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.device.Deadline;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.locks.LockSupport;

/**
 * Finds the ranks at fault when a deadline has passed. The rank that this one waits for may itself
 * wait for another, and so on. The failure names the rank at the end of this chain.
 */
final class TimeoutDiagnosis {
  private final int me;
  private final StatusSource source;

  TimeoutDiagnosis(int me, StatusSource source) {
    this.me = me;
    this.source = source;
  }

  /**
   * The failure to throw.
   *
   * @param awaited the ranks that this one waits for
   */
  CollectiveException of(Call call, List<Integer> awaited) {
    Set<Integer> culprits = new TreeSet<>();
    for (int rank : awaited) {
      Optional<CollectiveException> found = follow(call, rank, culprits);
      if (found.isPresent()) {
        return found.get();
      }
    }
    return timeout(call, List.copyOf(culprits), awaited);
  }

  /**
   * Follows the chain of waiting ranks. Adds the last one to the culprits, or returns a failure
   * that explains the timeout.
   */
  private Optional<CollectiveException> follow(Call call, int first, Set<Integer> culprits) {
    Set<Integer> seen = new LinkedHashSet<>(List.of(me));
    int rank = first;
    while (true) {
      RankStatus status = source.status(rank);
      if (status.failure().isPresent()) {
        return status.failure();
      }
      if (status.state() == RankStatus.State.CLOSED) {
        return Optional.of(closed(call, rank));
      }
      seen.add(rank);
      int next = status.waiting().map(WaitStatus::rank).orElse(rank);
      if (next == rank || seen.contains(next)) {
        culprits.add(next == me ? first : rank);
        return Optional.empty();
      }
      rank = next;
    }
  }

  /** The failure when a rank that is still needed has closed its communicator. */
  static CollectiveException closed(Call call, int rank) {
    return new CollectiveException(
        Kind.CLOSED,
        List.of(rank),
        "rank " + rank + " closed its communicator before it reached " + call);
  }

  private CollectiveException timeout(Call call, List<Integer> culprits, List<Integer> awaited) {
    String chain =
        culprits.equals(awaited)
            ? ""
            : ", and " + CollectiveException.name(awaited) + " with it, waiting for each other";
    return new CollectiveException(
        Kind.TIMEOUT,
        culprits,
        CollectiveException.name(culprits)
            + " did not do the part of "
            + call
            + " that rank "
            + me
            + " waited for within "
            + call.deadline()
            + chain);
  }

  /**
   * The status of a rank, as seen by another.
   *
   * @param state of its communicator
   * @param waiting the rank that it waits for, if that takes long
   * @param failure the failure, in state FAILED; the reason, in state DEAD
   */
  record RankStatus(
      State state, Optional<WaitStatus> waiting, Optional<CollectiveException> failure) {
    /** The state of a rank's communicator. */
    enum State {
      OPEN,
      FAILED,
      CLOSED,
      /** Its process has ended or does not answer. */
      DEAD
    }

    static final RankStatus CLOSED =
        new RankStatus(State.CLOSED, Optional.empty(), Optional.empty());

    static RankStatus open(Optional<WaitStatus> waiting) {
      return new RankStatus(State.OPEN, waiting, Optional.empty());
    }

    static RankStatus failed(CollectiveException cause) {
      return new RankStatus(State.FAILED, Optional.empty(), Optional.of(cause));
    }

    static RankStatus dead(CollectiveException cause) {
      return new RankStatus(State.DEAD, Optional.empty(), Optional.of(cause));
    }
  }

  /** Provides the state of other ranks. */
  @FunctionalInterface
  interface StatusSource {
    /** The state of a rank; may wait until the rank has answered. */
    RankStatus status(int rank);
  }

  /**
   * Asks the other ranks for their state when a deadline has passed. It asks all at once, so that
   * many silent ranks take no longer than one. Used once, by one thread.
   */
  static final class StatusPoll implements StatusSource {
    /** A rank that has not answered by then counts as stuck. */
    static final Duration LENGTH = Duration.ofSeconds(1);

    /** A waiting rank polls about every millisecond; one that misses this many polls is stuck. */
    private static final int POLLS_UNTIL_STUCK = 500;

    private static final long POLL_NANOS = 1_000_000;

    private final LocalPeers localPeers;
    private final RemoteRanks remotes;
    private final Call call;
    private final Map<Integer, Integer> beats;
    private final Map<Integer, Long> requests;
    private final Deadline end = Deadline.after(LENGTH);
    private int polls;

    /** Asks all ranks; the answers are awaited when they are needed. */
    StatusPoll(LocalPeers localPeers, RemoteRanks remotes, Call call) {
      this.localPeers = localPeers;
      this.remotes = remotes;
      this.call = call;
      this.beats = localPeers.beats();
      this.requests = remotes.askAll();
    }

    @Override
    public RankStatus status(int rank) {
      if (localPeers.has(rank)) {
        return localPeers.status(rank, call, liveWait(rank));
      }
      Runnable beat = localPeers.mine()::publishBeat;
      return remotes.status(rank, call, requests.get(rank), end, beat);
    }

    /**
     * What a rank of this host waits for. Empty when it no longer polls, because a stopped process
     * waits for no rank. The limit counts polls of this rank too, not only time: a busy machine may
     * delay both ranks.
     */
    private Optional<WaitStatus> liveWait(int rank) {
      while (true) {
        Optional<WaitStatus> waiting = localPeers.waiting(rank);
        boolean answered = localPeers.beat(rank) != beats.get(rank) || localPeers.hasEnded(rank);
        if (waiting.isEmpty() || answered) {
          return waiting;
        }
        if (polls == POLLS_UNTIL_STUCK || end.expired()) {
          return Optional.empty();
        }
        polls++;
        localPeers.mine().publishBeat();
        LockSupport.parkNanos(POLL_NANOS);
      }
    }
  }
}
