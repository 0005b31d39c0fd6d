package io.weft.training;

/** How a gradient is written to its buffer. */
public enum GradientWrite {
  /** It overwrites the values in the buffer. */
  REPLACE,
  /** It is added to the values in the buffer, in float32 and rounded once. */
  ACCUMULATE
}
