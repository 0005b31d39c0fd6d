package io.weft.collectives.fault;

import java.util.List;
import java.util.stream.Collectors;

/**
 * A collective failed. The message names the ranks at fault, the operation, and what to check.
 *
 * <p>{@link Kind#INVALID} is found before any data moved and leaves the communicator usable. After
 * every other kind the communicator is broken: each later operation fails with the same cause, on
 * every rank.
 */
public class CollectiveException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** The kind of failure, for code that reacts to it. */
  public enum Kind {
    /** The arguments are wrong on this rank; nothing was sent and the communicator still works. */
    INVALID,
    /** A rank did not arrive, or did not make progress, before the deadline. */
    TIMEOUT,
    /** A rank's process has ended or its connection broke. */
    DEAD,
    /** Ranks disagree about their common operation. */
    MISMATCH,
    /** A rank gave up on purpose or was interrupted. */
    ABORTED,
    /** The communicator was closed, here or by a rank that is still needed. */
    CLOSED,
    /** A file, a mapping or a socket failed. */
    IO
  }

  private final Kind kind;
  private final List<Integer> ranks;

  public CollectiveException(Kind kind, List<Integer> ranks, String message) {
    this(kind, ranks, message, null);
  }

  /**
   * A failure with its cause.
   *
   * @param ranks those at fault, empty when none is known
   */
  public CollectiveException(Kind kind, List<Integer> ranks, String message, Throwable cause) {
    super(message, cause);
    this.kind = kind;
    this.ranks = List.copyOf(ranks);
  }

  /** A failure of kind INVALID: the arguments are wrong on this rank. */
  public static CollectiveException invalid(String message) {
    return new CollectiveException(Kind.INVALID, List.of(), message);
  }

  public Kind kind() {
    return kind;
  }

  /** The ranks at fault, in order; empty when none is known. */
  public List<Integer> ranks() {
    return ranks;
  }

  /** Such as "rank 3" or "ranks 1, 4", for messages. */
  public static String name(List<Integer> ranks) {
    String list = ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
    return (ranks.size() == 1 ? "rank " : "ranks ") + list;
  }

  /**
   * Returns the same failure for another operation: a new stack trace, with this failure as its
   * cause.
   */
  public CollectiveException metBy(String operation) {
    return new CollectiveException(kind, ranks, operation + " cannot run: " + getMessage(), this);
  }
}
