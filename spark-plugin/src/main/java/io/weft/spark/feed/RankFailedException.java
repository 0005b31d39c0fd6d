package io.weft.spark.feed;

/**
 * A rank's function failed of itself, not because something around it was lost: no executor, no
 * other rank, no connection and no file. To train again on the same rows would most likely end in
 * the same way. The message names the rank and what its function threw; the cause is Spark's
 * exception, with the stack trace.
 */
public final class RankFailedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int rank;

  RankFailedException(int rank, String message, Throwable cause) {
    super(message, cause);
    this.rank = rank;
  }

  /** Whose function failed, from 0; of several the first that the driver heard of. */
  public int rank() {
    return rank;
  }
}
