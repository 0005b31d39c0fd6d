package io.weft.spark.columns;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;

/** Decimals of more than 18 digits: 16 bytes, little-endian two's complement, as in Arrow. */
public final class Decimal128 {
  private Decimal128() {}

  /** Writes an unscaled value from big-endian two's complement of any length. */
  static void put(byte[] bigEndian, Object base, long offset) {
    int length = bigEndian.length;
    long low = length == 0 || bigEndian[0] >= 0 ? 0 : -1;
    long high = low;
    for (int i = 0; i < length; i++) {
      high = high << 8 | low >>> 56;
      low = low << 8 | (bigEndian[i] & 0xff);
    }
    Platform.putLong(base, offset, low);
    Platform.putLong(base, offset + 8, high);
  }

  /** Reads a value with a precision and scale. */
  public static Decimal get(Object base, long offset, int precision, int scale) {
    long low = Platform.getLong(base, offset);
    long high = Platform.getLong(base, offset + 8);
    BigDecimal value =
        high == low >> 63
            ? BigDecimal.valueOf(low, scale)
            : new BigDecimal(new BigInteger(bigEndian(low, high)), scale);
    return Decimal.apply(value, precision, scale);
  }

  /** Returns the 16 bytes of a value, highest first. */
  private static byte[] bigEndian(long low, long high) {
    byte[] bytes = new byte[16];
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, Long.reverseBytes(high));
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + 8L, Long.reverseBytes(low));
    return bytes;
  }
}
