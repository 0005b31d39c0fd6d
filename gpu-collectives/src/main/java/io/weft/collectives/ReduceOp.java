package io.weft.collectives;

import java.util.Locale;

/** How a reduction combines the elements of several ranks. */
public enum ReduceOp {
  SUM(1),
  PRODUCT(2),
  MIN(3),
  MAX(4),
  /** The sum divided by the number of ranks; of integers, the wrapped sum, truncated to zero. */
  AVERAGE(5);

  private final int code;

  ReduceOp(int code) {
    this.code = code;
  }

  /** The code of the reduction in messages between ranks, 1 to 254. */
  public int code() {
    return code;
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
