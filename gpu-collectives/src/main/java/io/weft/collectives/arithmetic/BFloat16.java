package io.weft.collectives.arithmetic;

/**
 * Conversions of bfloat16, the upper half of a float32. Rounding is to nearest even; a NaN stays a
 * (quiet) NaN.
 */
public final class BFloat16 {
  private BFloat16() {}

  public static float toFloat(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }

  public static short fromFloat(float value) {
    int bits = Float.floatToRawIntBits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
      return (short) (bits >>> 16 | 0x40);
    }
    int odd = bits >>> 16 & 1;
    return (short) ((bits + 0x7fff + odd) >>> 16);
  }
}
