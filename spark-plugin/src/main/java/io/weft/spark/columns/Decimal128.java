package io.weft.spark.columns;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;

/** Decimals of more than 18 digits: 16 bytes, little-endian two's complement, as in Arrow. */
public final class Decimal128 {
  /** Magnitude from which Spark does not store an unscaled value as a long. */
  private static final long COMPACT_END = 1_000_000_000_000_000_000L;

  private Decimal128() {}

  /** Writes an unscaled value from big-endian two's complement of any length. */
  static void put(byte[] bigEndian, Object base, long offset) {
    put(bigEndian, Platform.BYTE_ARRAY_OFFSET, bigEndian.length, base, offset);
  }

  /**
   * Writes an unscaled value from big-endian two's complement.
   *
   * @param source the array of the bytes, or null if they are off-heap
   * @param length any; of more than 16 bytes the last 16 count
   */
  static void put(Object source, long from, int length, Object base, long offset) {
    if (length > 16) {
      put(source, from + length - 16, 16, base, offset);
    } else if (length > 8) {
      long high = Long.reverseBytes(Platform.getLong(source, from)) >> (8 * (16 - length));
      set(Long.reverseBytes(Platform.getLong(source, from + length - 8)), high, base, offset);
    } else {
      long low = length == 0 ? 0 : Platform.getByte(source, from);
      for (int i = 1; i < length; i++) {
        low = low << 8 | (Platform.getByte(source, from + i) & 0xff);
      }
      set(low, low >> 63, base, offset);
    }
  }

  private static void set(long low, long high, Object base, long offset) {
    Platform.putLong(base, offset, low);
    Platform.putLong(base, offset + 8, high);
  }

  /** Reads a value with a precision and scale. Values of up to 18 digits are compact decimals. */
  public static Decimal get(Object base, long offset, int precision, int scale) {
    long low = Platform.getLong(base, offset);
    long high = Platform.getLong(base, offset + 8);
    if (high == low >> 63 && -COMPACT_END < low && low < COMPACT_END) {
      return Decimal.createUnsafe(low, precision, scale);
    }
    byte[] bytes = new byte[16];
    shortest(base, offset, bytes, Platform.BYTE_ARRAY_OFFSET);
    int length = length(low, high);
    BigInteger unscaled = new BigInteger(bytes, 0, length);
    return Decimal.apply(new BigDecimal(unscaled, scale), precision, scale);
  }

  /**
   * Writes a value's shortest big-endian two's complement, followed by zeros up to 16 bytes.
   *
   * @return its bytes, 1 to 16
   */
  static int shortest(Object source, long from, Object base, long offset) {
    long low = Platform.getLong(source, from);
    long high = Platform.getLong(source, from + 8);
    int length = length(low, high);
    int shift = 64 - 8 * length;
    if (length > 8) {
      shift += 64;
      long first = shift == 0 ? high : high << shift | low >>> (64 - shift);
      set(Long.reverseBytes(first), Long.reverseBytes(low << shift), base, offset);
    } else {
      set(Long.reverseBytes(low << shift), 0, base, offset);
    }
    return length;
  }

  /** Bytes of the shortest two's complement. */
  private static int length(long low, long high) {
    int zeros =
        high == low >> 63
            ? 64 + Long.numberOfLeadingZeros(low ^ high)
            : Long.numberOfLeadingZeros(high ^ high >> 63);
    return (128 - zeros) / 8 + 1;
  }
}
