package io.weft.training;

import io.weft.collectives.buffer.TypedBuffer;

/**
 * Weights as an operator uses them: a parameter's own values, or a copy in another form (rounded to
 * bfloat16, quantised, packed) that still knows which parameter it came from. Immutable.
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
   * The values that the optimiser steps.
   *
   * @param parameter index in order of registration
   */
  public static Weights original(int parameter, TypedBuffer values) {
    return new Weights(parameter, values, false);
  }

  /** The same weights in another form. A copy of a copy is one of the original. */
  public Weights copiedTo(TypedBuffer other) {
    return new Weights(parameter, other, true);
  }

  /** Index of the original parameter, of copies too. */
  public int parameter() {
    return parameter;
  }

  /** Where these values lie, in this form. */
  public TypedBuffer values() {
    return values;
  }

  /** Whether this is another form of the weights than the optimiser steps. */
  public boolean isCopy() {
    return copy;
  }
}
