package io.weft.collectives.host;

import io.weft.device.Deadline;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/**
 * What the other ranks are doing when a deadline has passed. All are asked at once, so that many
 * silent ones take the time of one. Used once, by one thread.
 */
final class Survey implements StatusSource {
  /** Who has not answered by then is taken for stuck. */
  static final Duration LENGTH = Duration.ofSeconds(1);

  /** A waiting rank looks every millisecond or so; one that misses so many looks is stuck. */
  private static final int LOOKS_UNTIL_STUCK = 500;

  private static final long LOOK_NANOS = 1_000_000;

  private final Neighbours neighbours;
  private final RemoteRanks remotes;
  private final Call call;
  private final Map<Integer, Integer> beats;
  private final Map<Integer, Long> questions;
  private final Deadline end = Deadline.after(LENGTH);
  private int looks;

  /** Asks all; the answers are waited for when they are wanted. */
  Survey(Neighbours neighbours, RemoteRanks remotes, Call call) {
    this.neighbours = neighbours;
    this.remotes = remotes;
    this.call = call;
    this.beats = neighbours.beats();
    this.questions = remotes.askAll();
  }

  @Override
  public RankStatus status(int rank) {
    if (neighbours.has(rank)) {
      return neighbours.status(rank, call, liveWait(rank));
    }
    Runnable beat = neighbours.mine()::publishBeat;
    return remotes.status(rank, call, questions.get(rank), end, beat);
  }

  /**
   * What a rank of this host waits for, unless it does not look any more: a stopped process waits
   * for nobody. Counts looks of this rank too, not only time, in which the other may have been held
   * up as well.
   */
  private Optional<WaitStatus> liveWait(int rank) {
    while (true) {
      Optional<WaitStatus> waiting = neighbours.waiting(rank);
      boolean answered = neighbours.beat(rank) != beats.get(rank) || neighbours.hasEnded(rank);
      if (waiting.isEmpty() || answered) {
        return waiting;
      }
      if (looks == LOOKS_UNTIL_STUCK || end.expired()) {
        return Optional.empty();
      }
      looks++;
      neighbours.mine().publishBeat();
      LockSupport.parkNanos(LOOK_NANOS);
    }
  }
}
