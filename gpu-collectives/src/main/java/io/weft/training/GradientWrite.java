package io.weft.training;

/** What happens to the values that a gradient's buffer holds before. */
public enum GradientWrite {
  /** They are overwritten. */
  REPLACE,
  /** The gradient is added to them, in float32 and rounded once. */
  ACCUMULATE
}
