package io.weft.collectives;

import java.util.Locale;

/**
 * The kinds of operations. Ranks send the codes to each other; a code never changes its meaning.
 */
public enum OperationKind {
  BARRIER(1),
  BROADCAST(2),
  REDUCE(3),
  ALL_REDUCE(4),
  ALL_GATHER(5),
  REDUCE_SCATTER(6),
  ALL_TO_ALL(7),
  RAGGED_ALL_TO_ALL(8),
  GATHER(9),
  SCATTER(10),
  SEND(11),
  RECEIVE(12);

  private final int code;
  private final String text = name().toLowerCase(Locale.ROOT).replace('_', '-');

  OperationKind(int code) {
    this.code = code;
  }

  /** The code of the operation in messages between ranks, 1 to 254. */
  public int code() {
    return code;
  }

  /** Whether all ranks take part in it, rather than a pair. */
  public boolean isCollective() {
    return this != SEND && this != RECEIVE;
  }

  /** The name in messages and metrics, such as all-reduce. */
  @Override
  public String toString() {
    return text;
  }
}
