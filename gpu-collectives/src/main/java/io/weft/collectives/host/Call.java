package io.weft.collectives.host;

import io.weft.collectives.Signature;
import io.weft.device.Deadline;

/**
 * The current operation, for the classes that carry it out. One thread at a time. One instance per
 * communicator, reset for every operation.
 */
final class Call {
  private Signature signature;
  private long sequence;
  private int phase;
  private Deadline deadline;

  /**
   * Starts an operation.
   *
   * @param number of the collective on this communicator; for a send or receive, of the last
   *     collective
   */
  void start(Signature ofOperation, long number, Deadline until) {
    signature = ofOperation;
    sequence = number;
    phase = 0;
    deadline = until;
  }

  /** Starts the next phase of an operation that has several. */
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
