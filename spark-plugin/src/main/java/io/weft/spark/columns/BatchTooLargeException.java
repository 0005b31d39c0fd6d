package io.weft.spark.columns;

/** A batch would exceed its 32-bit offsets or a chunk, so the builder must be flushed first. */
final class BatchTooLargeException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Maximum bytes of one batch, and maximum elements of its columns. */
  static final int LIMIT = Integer.MAX_VALUE - 64;

  BatchTooLargeException() {
    super("a batch or its column would exceed " + LIMIT + " bytes or elements", null, false, false);
  }

  /**
   * Adds to a number of bytes or elements and checks the limit.
   *
   * @throws BatchTooLargeException if the sum is beyond the limit
   */
  static int add(int held, long more) {
    long sum = held + more;
    if (sum > LIMIT) {
      throw new BatchTooLargeException();
    }
    return (int) sum;
  }
}
