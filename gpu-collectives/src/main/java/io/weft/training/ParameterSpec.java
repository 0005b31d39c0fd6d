package io.weft.training;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import java.util.Objects;

/**
 * The properties of a parameter that must be the same on all ranks.
 *
 * @param name unique within a model
 * @param type of its gradient or value: FLOAT32 or BFLOAT16
 * @param count elements, 1 or more
 */
public record ParameterSpec(String name, DataType type, long count) {
  /**
   * Checks type and count.
   *
   * @throws IllegalArgumentException naming the parameter
   */
  public ParameterSpec {
    Objects.requireNonNull(name, "name");
    if (type != DataType.FLOAT32 && type != DataType.BFLOAT16) {
      throw new IllegalArgumentException(
          "parameter " + name + " is " + type + "; training works on float32 and bfloat16");
    }
    if (count < 1) {
      throw new IllegalArgumentException("parameter " + name + " has " + count + " elements");
    }
  }

  /** The size of all elements in bytes. */
  public long bytes() {
    return Math.multiplyExact(count, (long) type.bytes());
  }

  /**
   * Checks that a buffer holds this many elements of either floating-point type.
   *
   * @param what the buffer's role, for the message
   * @throws IllegalArgumentException naming the parameter and both sizes
   */
  void requireFit(String what, TypedBuffer buffer) {
    boolean floats = buffer.type() == DataType.FLOAT32 || buffer.type() == DataType.BFLOAT16;
    if (!floats || buffer.count() != count) {
      throw new IllegalArgumentException(
          "the " + what + " of " + this + " cannot be " + buffer.count() + " " + buffer.type());
    }
  }

  /** A text such as {@code layer1.weight (1024 float32)}. */
  @Override
  public String toString() {
    return name + " (" + count + " " + type + ")";
  }
}
