package io.weft.transfers;

import io.weft.collectives.DataType;
import java.util.Arrays;
import java.util.List;

/**
 * An array's element type and its dimensions, the slowest first.
 *
 * @param dimensions none for a scalar; each 0 or more
 */
public record BufferShape(DataType type, List<Long> dimensions) {
  public BufferShape {
    dimensions = List.copyOf(dimensions);
    for (long dimension : dimensions) {
      if (dimension < 0) {
        throw new IllegalArgumentException("dimension " + dimension + " in " + dimensions);
      }
    }
  }

  /** A shape such as {@code of(FLOAT32, 16, 1024)}. */
  public static BufferShape of(DataType type, long... dimensions) {
    return new BufferShape(type, Arrays.stream(dimensions).boxed().toList());
  }

  /**
   * The number of elements.
   *
   * @throws ArithmeticException if the number does not fit a long
   */
  public long elements() {
    long elements = 1;
    for (long dimension : dimensions) {
      elements = Math.multiplyExact(elements, dimension);
    }
    return elements;
  }

  /** The bytes of all elements. */
  public long bytes() {
    return Math.multiplyExact(elements(), (long) type.bytes());
  }

  public boolean isEmpty() {
    return elements() == 0;
  }

  /** For example float32[16, 1024]. */
  @Override
  public String toString() {
    return type + dimensions.toString();
  }
}
