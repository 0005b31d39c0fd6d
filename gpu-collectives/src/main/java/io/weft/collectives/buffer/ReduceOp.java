package io.weft.collectives.buffer;

import java.util.Locale;

/**
 * How elements of several ranks become one.
 *
 * <p>Integers wrap around. The 16-bit floats are computed in float32 and rounded once, to nearest
 * even. MIN and MAX of floats give NaN where any rank has NaN.
 */
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

  /** What stands for it between ranks, 1 to 254. */
  public int code() {
    return code;
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
