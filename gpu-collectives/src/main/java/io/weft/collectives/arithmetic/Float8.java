package io.weft.collectives.arithmetic;

/**
 * The 8-bit floats of the Open Compute Project's "8-bit Floating Point Specification" (2023).
 * Rounding is to nearest even, for subnormals too; a NaN stays a NaN of the same sign. Immutable.
 */
@SuppressWarnings("ImmutableEnumChecker") // the array is filled once and never exposed
public enum Float8 {
  /**
   * Sign, 4 bits of exponent, 3 of fraction: up to 448, steps of 2^-9 around zero. There is no
   * infinity: infinities and values that are too large become NaN.
   */
  E4M3(3, 7, 464f, 0x7f),
  /**
   * Sign, 5 bits of exponent, 2 of fraction: up to 57344, steps of 2^-16 around zero. Values that
   * are too large become infinite.
   */
  E5M2(2, 15, Math.nextDown(61440f), 0x7c);

  private static final int SIGN = 0x80;
  private static final int NAN = 0x7f;
  private static final int WIDE_INFINITY = 0x7f800000;
  private static final int WIDE_FRACTION = 23;
  private static final int WIDE_BIAS = 127;

  private final int dropped;
  private final int rebias;
  private final int leastNormal;
  private final int lastFinite;
  private final int overflow;
  private final float shifter;
  private final float[] values = new float[256];

  /**
   * @param lastFinite the largest float32 that does not become {@code overflow}
   */
  Float8(int fraction, int bias, float lastFinite, int overflow) {
    this.dropped = WIDE_FRACTION - fraction;
    this.rebias = (WIDE_BIAS - bias) << WIDE_FRACTION;
    this.leastNormal = rebias + (1 << WIDE_FRACTION);
    this.lastFinite = Float.floatToRawIntBits(lastFinite);
    this.overflow = overflow;
    // A float32 of this size has the same step width as the subnormals of this type.
    this.shifter = Math.scalb(1f, 1 - bias - fraction + WIDE_FRACTION);
    for (int code = 0; code < values.length; code++) {
      values[code] = value(code, fraction, bias);
    }
  }

  private float value(int code, int fraction, int bias) {
    int magnitude = code & ~SIGN;
    float sign = (code & SIGN) == 0 ? 1 : -1;
    if (magnitude >= overflow) {
      return magnitude == overflow && overflow != NAN ? sign * Float.POSITIVE_INFINITY : Float.NaN;
    }
    int exponent = magnitude >>> fraction;
    int digits = magnitude & ((1 << fraction) - 1);
    return exponent == 0
        ? sign * Math.scalb((float) digits, 1 - bias - fraction)
        : sign * Math.scalb((float) (digits | (1 << fraction)), exponent - bias - fraction);
  }

  /** The largest finite value. */
  public float largest() {
    return values[overflow - 1];
  }

  public float toFloat(byte code) {
    return values[code & 0xff];
  }

  public byte fromFloat(float value) {
    int bits = Float.floatToRawIntBits(value);
    int sign = bits >>> 24 & SIGN;
    int magnitude = bits & 0x7fffffff;
    if (magnitude > lastFinite) {
      return (byte) (sign | (magnitude > WIDE_INFINITY ? NAN : overflow));
    }
    return (byte) (sign | (magnitude < leastNormal ? subnormal(magnitude) : normal(magnitude)));
  }

  /** The addition rounds: the fraction is left in the lowest bits. */
  private int subnormal(int magnitude) {
    float shifted = Float.intBitsToFloat(magnitude) + shifter;
    return Float.floatToRawIntBits(shifted) - Float.floatToRawIntBits(shifter);
  }

  /** A carry of the rounding into the exponent is correct. */
  private int normal(int magnitude) {
    int odd = magnitude >>> dropped & 1;
    return (magnitude - rebias + (1 << (dropped - 1)) - 1 + odd) >>> dropped;
  }
}
