package io.weft.collectives.host;

import io.weft.collectives.fault.CollectiveException;
import java.util.Optional;

/**
 * What is known of a rank from outside.
 *
 * @param state how its communicator is
 * @param waiting whom it waits for, if that has been long
 * @param failure why it failed, in state FAILED; why it is taken for dead, in state DEAD
 */
record RankStatus(
    State state, Optional<WaitStatus> waiting, Optional<CollectiveException> failure) {
  /** How a rank's communicator is. */
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
