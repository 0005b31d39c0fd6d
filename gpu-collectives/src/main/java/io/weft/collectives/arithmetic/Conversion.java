package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;

/**
 * Converts between the 16-bit floats and float32, for reductions that send partial results.
 * Stateless.
 */
public final class Conversion {
  private Conversion() {}

  /**
   * Widens elements to float32.
   *
   * @param type FLOAT16 or BFLOAT16
   * @param from address of 2 bytes per element
   * @param to address of 4 bytes per element; must not overlap
   */
  public static void widen(DataType type, long from, long to, long count) {
    boolean brain = isBrain(type);
    for (long i = 0; i < count; i++) {
      short bits = Memory.getShort(from + 2 * i);
      Memory.putFloat(to + 4 * i, brain ? BFloat16.toFloat(bits) : Float16.toFloat(bits));
    }
  }

  /**
   * Divides and rounds float32 elements.
   *
   * @param type FLOAT16 or BFLOAT16
   * @param from address of 4 bytes per element
   * @param to address of 2 bytes per element; must not overlap
   * @param divisor 1 for none
   */
  public static void narrow(DataType type, long from, long to, long count, int divisor) {
    boolean brain = isBrain(type);
    for (long i = 0; i < count; i++) {
      float value = Memory.getFloat(from + 4 * i) / divisor;
      Memory.putShort(to + 2 * i, brain ? BFloat16.fromFloat(value) : Float16.fromFloat(value));
    }
  }

  private static boolean isBrain(DataType type) {
    return switch (type) {
      case BFLOAT16 -> true;
      case FLOAT16 -> false;
      default -> throw new IllegalArgumentException(type + " is not a 16-bit float");
    };
  }
}
