package io.weft.spark.columns;

/** A batch being built would not fit its 32-bit offsets: the builder must be flushed first. */
final class BatchTooLargeException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Bytes or elements that one column of one batch can hold. */
  static final int LIMIT = Integer.MAX_VALUE - 64;

  BatchTooLargeException() {
    super("a column of one batch would exceed " + LIMIT + " bytes or elements", null, false, false);
  }

  /**
   * Adds to a number of bytes or elements.
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
