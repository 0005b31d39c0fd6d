package io.weft.collectives.arithmetic;

/**
 * Conversions of IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction. Rounding is to
 * nearest even. Values that are too large become infinite. A NaN stays a (quiet) NaN.
 */
public final class Float16 {
  private static final int SIGN = 0x8000;
  private static final int INFINITY = 0x7c00;
  private static final float TWO_TO_112 = 0x1p112f;

  private Float16() {}

  public static float toFloat(short bits) {
    int magnitude = bits & 0x7fff;
    int sign = (bits & SIGN) << 16;
    if (magnitude >= INFINITY) {
      return Float.intBitsToFloat(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    }
    // In the wider fields the exponent is too small by 112, for subnormals too.
    float scaled = Float.intBitsToFloat(magnitude << 13) * TWO_TO_112;
    return Float.intBitsToFloat(sign | Float.floatToRawIntBits(scaled));
  }

  public static short fromFloat(float value) {
    int bits = Float.floatToRawIntBits(value);
    int sign = bits >>> 16 & SIGN;
    int magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x47800000) {
      return (short) (sign | special(magnitude));
    }
    return (short) (sign | (magnitude < 0x38800000 ? subnormal(magnitude) : normal(magnitude)));
  }

  /** 2^16 and above, infinities and NaNs. */
  private static int special(int magnitude) {
    return magnitude > 0x7f800000 ? INFINITY | 0x200 | (magnitude >>> 13 & 0x3ff) : INFINITY;
  }

  /** Below 2^-14: adding 2^-1 leaves the fraction, rounded, in the lowest bits of a float. */
  private static int subnormal(int magnitude) {
    float shifted = Float.intBitsToFloat(magnitude) + 0.5f;
    return Float.floatToRawIntBits(shifted) - Float.floatToRawIntBits(0.5f);
  }

  /**
   * A carry of the rounding into the exponent is correct, also from the largest exponent to
   * infinity.
   */
  private static int normal(int magnitude) {
    int odd = magnitude >>> 13 & 1;
    return (magnitude - 0x38000000 + 0xfff + odd) >>> 13;
  }
}
