package io.weft.collectives.host;

import io.weft.collectives.fault.CollectiveException;
import java.util.Optional;

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

  static final RankStatus CLOSED = new RankStatus(State.CLOSED, Optional.empty(), Optional.empty());

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
