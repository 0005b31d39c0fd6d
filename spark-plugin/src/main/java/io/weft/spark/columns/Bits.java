package io.weft.spark.columns;

import org.apache.spark.unsafe.Platform;

/**
 * Bitmaps in memory, lowest bit first. Writes append, and may overwrite bits above their position.
 */
final class Bits {
  /** Moves the lowest bit of each of eight bytes into the highest byte, in order. */
  private static final long PACK = 0x0102040810204080L;

  private Bits() {}

  static boolean get(long bits, long position) {
    return ((Platform.getByte(null, bits + (position >> 3)) >> (position & 7)) & 1) != 0;
  }

  static void append(long bits, long position, boolean value) {
    long address = bits + (position >> 3);
    int shift = (int) position & 7;
    int below = shift == 0 ? 0 : Platform.getByte(null, address) & ((1 << shift) - 1);
    Platform.putByte(null, address, (byte) (below | (value ? 1 << shift : 0)));
  }

  /** Appends ones. */
  static void appendOnes(long bits, long position, int count) {
    long at = position;
    long end = position + count;
    for (; (at & 7) != 0 && at < end; at++) {
      append(bits, at, true);
    }
    Platform.setMemory(null, bits + (at >> 3), (end - at) >> 3, (byte) 0xff);
    for (at += (end - at) & -8; at < end; at++) {
      append(bits, at, true);
    }
  }

  /**
   * Appends a bit for each byte of an array.
   *
   * @param bytes 0 or 1 each
   * @param flip 1 to append the opposite, else 0
   */
  static void append(long bits, long position, byte[] bytes, int from, int to, int flip) {
    long at = position;
    int i = from;
    for (; (at & 7) != 0 && i < to; at++, i++) {
      append(bits, at, bytes[i] != flip);
    }
    long flips = flip == 0 ? 0 : 0x0101010101010101L;
    for (; i + 8 <= to; at += 8, i += 8) {
      long eight = Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + i) ^ flips;
      Platform.putByte(null, bits + (at >> 3), (byte) ((eight * PACK) >>> 56));
    }
    for (; i < to; at++, i++) {
      append(bits, at, bytes[i] != flip);
    }
  }

  /** Appends bits of another bitmap. */
  static void append(long bits, long position, long source, long from, int count) {
    long at = position;
    long read = from;
    long end = position + count;
    for (; (at & 7) != 0 && at < end; at++, read++) {
      append(bits, at, get(source, read));
    }
    int bytes = (int) (end - at) >> 3;
    copyBytes(bits + (at >> 3), source, read, bytes);
    read += 8L * bytes;
    for (at += 8L * bytes; at < end; at++, read++) {
      append(bits, at, get(source, read));
    }
  }

  private static void copyBytes(long target, long source, long from, int bytes) {
    int shift = (int) from & 7;
    long first = source + (from >> 3);
    if (shift == 0) {
      Platform.copyMemory(null, first, null, target, bytes);
      return;
    }
    for (int i = 0; i < bytes; i++) {
      int low = (Platform.getByte(null, first + i) & 0xff) >> shift;
      int high = Platform.getByte(null, first + i + 1) << (8 - shift);
      Platform.putByte(null, target + i, (byte) (low | high));
    }
  }

  /** Number of zeros among the first bits. */
  static int zeros(long bits, int count) {
    return zeros(bits, 0, count);
  }

  /** Number of zeros in a run of bits. */
  static int zeros(long bits, long from, int count) {
    long at = from;
    long end = from + count;
    int ones = 0;
    for (; (at & 7) != 0 && at < end; at++) {
      ones += get(bits, at) ? 1 : 0;
    }
    for (; at + 64 <= end; at += 64) {
      ones += Long.bitCount(Platform.getLong(null, bits + (at >> 3)));
    }
    for (; at < end; at++) {
      ones += get(bits, at) ? 1 : 0;
    }
    return count - ones;
  }
}
