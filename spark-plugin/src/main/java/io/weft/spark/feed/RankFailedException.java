package io.weft.spark.feed;

/**
 * Reports that a rank's function itself failed, as opposed to the loss of an executor, another
 * rank, a connection or a file. A new run over the same rows would most likely fail again. The
 * message names the rank and the exception of its function; the cause is Spark's exception, with
 * the stack trace.
 */
public final class RankFailedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int rank;

  RankFailedException(int rank, String message, Throwable cause) {
    super(message, cause);
    this.rank = rank;
  }

  /**
   * The rank whose function failed, from 0; if there were several, the first that the driver
   * received.
   */
  public int rank() {
    return rank;
  }
}
