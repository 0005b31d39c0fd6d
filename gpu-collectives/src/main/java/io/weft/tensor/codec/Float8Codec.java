package io.weft.tensor.codec;

import io.weft.collectives.DataType;
import io.weft.collectives.arithmetic.Float8;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;

/**
 * Encodes float32 as 8-bit floats, multiplied by a power of two that fits the tensor.
 *
 * <p>With amax the largest finite magnitude, the scale is the largest 2^k for which amax · 2^k is
 * at most the largest 8-bit value. It is 1 if zero is the only finite value. Multiplication by a
 * power of two is exact, and 2^-k is its exact reciprocal. The header holds k. Both sides compute
 * the factor as a double, so that no k is too large.
 *
 * <p>For the decoded value y of a finite x:
 *
 * <ul>
 *   <li>E4M3: |x - y| ≤ max(|x| / 16, amax / 2^17) + 2^-150
 *   <li>E5M2: |x - y| ≤ max(|x| / 8, amax / 2^31) + 2^-150
 * </ul>
 *
 * <p>A finite value stays finite. A NaN stays a NaN. E5M2 keeps an infinity. E4M3 has no infinity,
 * so it becomes a NaN, and an overflow stays visible. The sign of zero is kept.
 */
final class Float8Codec implements TensorCodec {
  private static final int WIDE = DataType.FLOAT32.bytes();
  private static final int INFINITY = 0x7f800000;

  private final Float8 format;

  Float8Codec(Float8 format) {
    this.format = format;
  }

  private CodecKind kind() {
    return format == Float8.E4M3 ? CodecKind.FLOAT8_E4M3 : CodecKind.FLOAT8_E5M2;
  }

  @Override
  public boolean encodes(DataType dtype) {
    return dtype == DataType.FLOAT32;
  }

  @Override
  public TensorEncoder encoder(Tensor tensor) {
    TensorEncoder.require(this, kind(), tensor);
    int exponent = scaleExponent(amax(tensor.address(), tensor.type().elements()));
    double scale = Math.scalb(1.0, exponent);
    return new TensorEncoder(tensor, new TensorHeader(kind(), tensor.type(), exponent)) {
      @Override
      int encode(long from, int elements, long to) {
        for (int i = 0; i < elements; i++) {
          float scaled = (float) (Memory.getFloat(from + (long) WIDE * i) * scale);
          Memory.putByte(to + i, format.fromFloat(scaled));
        }
        return elements;
      }
    };
  }

  /** The largest finite magnitude; 0 if there is none. */
  private static float amax(long address, long elements) {
    int most = 0;
    for (long i = 0; i < elements; i++) {
      int magnitude = Memory.getInt(address + WIDE * i) & 0x7fffffff;
      // Finite floats have the order of their bits.
      if (magnitude < INFINITY) {
        most = Math.max(most, magnitude);
      }
    }
    return Float.intBitsToFloat(most);
  }

  private int scaleExponent(float amax) {
    if (amax == 0) {
      return 0;
    }
    // Uses doubles, in which no float32 is subnormal.
    int exponent = Math.getExponent((double) format.largest()) - Math.getExponent((double) amax);
    return Math.scalb((double) amax, exponent) <= format.largest() ? exponent : exponent - 1;
  }

  @Override
  public int pieceBound(DataType dtype, int elements) {
    return elements;
  }

  @Override
  public void checkBody(TensorHeader header, long body, long bytes) {
    long expected = header.type().elements();
    header.checkBody(bytes == expected, "it has " + bytes + " bytes, not " + expected);
  }

  @Override
  public void decode(TensorHeader header, long body, long bytes, long to) {
    double inverse = Math.scalb(1.0, -header.scaleExponent());
    for (long i = 0; i < bytes; i++) {
      float narrow = format.toFloat(Memory.getByte(body + i));
      Memory.putFloat(to + WIDE * i, unscaled(narrow, inverse));
    }
  }

  /** Limits the value, because the largest float32 may have been rounded up to 2^128. */
  private static float unscaled(float narrow, double inverse) {
    float wide = (float) (narrow * inverse);
    return Float.isInfinite(wide) && !Float.isInfinite(narrow)
        ? Math.copySign(Float.MAX_VALUE, narrow)
        : wide;
  }
}
