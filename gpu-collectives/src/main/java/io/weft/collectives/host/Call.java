package io.weft.collectives.host;

import io.weft.collectives.operation.Signature;
import io.weft.device.Deadline;

/**
 * The operation that runs now, as the parts of it see it. One thread at a time; made once per
 * communicator and set anew for every operation.
 */
final class Call {
  private Signature signature;
  private long sequence;
  private int phase;
  private Deadline deadline;

  /**
   * Starts an operation.
   *
   * @param number of the collective on this communicator; of the last one, for a pair's
   */
  void start(Signature ofOperation, long number, Deadline until) {
    signature = ofOperation;
    sequence = number;
    phase = 0;
    deadline = until;
  }

  /** Moves on to the next part of an operation that is made of several. */
  void nextPhase() {
    phase++;
  }

  Signature signature() {
    return signature;
  }

  long sequence() {
    return sequence;
  }

  int phase() {
    return phase;
  }

  Deadline deadline() {
    return deadline;
  }

  /** Such as "all-reduce sum of 8 float32 (collective #3)". */
  @Override
  public String toString() {
    return signature + " (" + (signature.isCollective() ? "collective #" + sequence : "pair") + ")";
  }
}
