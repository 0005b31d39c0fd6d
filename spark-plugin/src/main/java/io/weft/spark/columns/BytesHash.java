package io.weft.spark.columns;

import org.apache.spark.unsafe.Platform;

/**
 * The hash of a run of bytes in {@link BatchChecksum}, for short runs much faster than XXH64. Two
 * numbers take turns with the words, so that one multiplication does not wait for the other. The
 * last step takes some bytes twice. Stateless.
 */
final class BytesHash {
  private static final long PRIME_1 = 0x9E3779B185EBCA87L;
  private static final long PRIME_2 = 0xC2B2AE3D27D4EB4FL;
  private static final int PAIR = 2 * Long.BYTES;

  private BytesHash() {}

  static long of(Object base, long offset, int length) {
    if (length < Long.BYTES) {
      return few(base, offset, length);
    }
    long left = length * PRIME_1;
    long right = PRIME_2;
    long last = offset + length - PAIR;
    long at = offset;
    // The first steps are no loop, whose start and end would cost more than these.
    if (at < last) {
      left = step(left, Platform.getLong(base, at));
      right = step(right, Platform.getLong(base, at + Long.BYTES));
      at += PAIR;
      if (at < last) {
        left = step(left, Platform.getLong(base, at));
        right = step(right, Platform.getLong(base, at + Long.BYTES));
        at += PAIR;
      }
    }
    for (; at < last; at += PAIR) {
      left = step(left, Platform.getLong(base, at));
      right = step(right, Platform.getLong(base, at + Long.BYTES));
    }
    left = step(left, Platform.getLong(base, Math.max(offset, last)));
    right = step(right, Platform.getLong(base, last + Long.BYTES));
    return left ^ Long.rotateLeft(right, Integer.SIZE);
  }

  private static long few(Object base, long offset, int length) {
    if (length >= Integer.BYTES) {
      long end = offset + length - Integer.BYTES;
      long first = step(length * PRIME_1, Platform.getInt(base, offset));
      return step(first, Platform.getInt(base, end));
    }
    long word = length;
    for (int i = 0; i < length; i++) {
      word = (word << Byte.SIZE) | (Platform.getByte(base, offset + i) & 0xFF);
    }
    return step(PRIME_2, word);
  }

  /** The first multiplication matters: else two changes in the high bits of words often cancel. */
  private static long step(long hash, long word) {
    return Long.rotateLeft(hash ^ word * PRIME_2, 29) * PRIME_1;
  }
}
