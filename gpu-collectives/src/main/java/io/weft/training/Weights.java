package io.weft.training;

import io.weft.collectives.TypedBuffer;

/**
 * Weights as an operator uses them: a parameter's own values, or a copy in another form (rounded to
 * bfloat16, quantised, packed) that refers to its original parameter. Immutable.
 */
public final class Weights {
  private final int parameter;
  private final TypedBuffer values;
  private final boolean copy;

  private Weights(int parameter, TypedBuffer values, boolean copy) {
    this.parameter = parameter;
    this.values = values;
    this.copy = copy;
  }

  /**
   * The values that the optimiser updates.
   *
   * @param parameter index in order of registration
   */
  public static Weights original(int parameter, TypedBuffer values) {
    return new Weights(parameter, values, false);
  }

  /** The same weights in another form. A copy of a copy refers to the original. */
  public Weights copiedTo(TypedBuffer other) {
    return new Weights(parameter, other, true);
  }

  /** The index of the original parameter, for copies too. */
  public int parameter() {
    return parameter;
  }

  /** The values, in this form. */
  public TypedBuffer values() {
    return values;
  }

  /** Whether this is a copy, not the values that the optimiser updates. */
  public boolean isCopy() {
    return copy;
  }
}
