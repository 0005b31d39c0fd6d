package io.weft.collectives.host;

import io.weft.device.Deadline;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/**
 * Asks the other ranks for their state when a deadline has passed. It asks all at once, so that
 * many silent ranks take no longer than one. Used once, by one thread.
 */
final class Survey implements StatusSource {
  /** A rank that has not answered by then counts as stuck. */
  static final Duration LENGTH = Duration.ofSeconds(1);

  /** A waiting rank polls about every millisecond; one that misses this many polls is stuck. */
  private static final int POLLS_UNTIL_STUCK = 500;

  private static final long POLL_NANOS = 1_000_000;

  private final Neighbours localPeers;
  private final RemoteRanks remotes;
  private final Call call;
  private final Map<Integer, Integer> beats;
  private final Map<Integer, Long> questions;
  private final Deadline end = Deadline.after(LENGTH);
  private int polls;

  /** Asks all ranks; the answers are awaited when they are needed. */
  Survey(Neighbours localPeers, RemoteRanks remotes, Call call) {
    this.localPeers = localPeers;
    this.remotes = remotes;
    this.call = call;
    this.beats = localPeers.beats();
    this.questions = remotes.askAll();
  }

  @Override
  public RankStatus status(int rank) {
    if (localPeers.has(rank)) {
      return localPeers.status(rank, call, liveWait(rank));
    }
    Runnable beat = localPeers.mine()::publishBeat;
    return remotes.status(rank, call, questions.get(rank), end, beat);
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
