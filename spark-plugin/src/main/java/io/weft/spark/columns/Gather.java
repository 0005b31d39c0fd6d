package io.weft.spark.columns;

import org.apache.spark.unsafe.Platform;

/**
 * The inner loops of the scatter. They copy values of fixed width of selected rows to contiguous
 * memory. Rows must be within the source; there is no check.
 */
final class Gather {
  private Gather() {}

  /**
   * Copies the values of selected rows.
   *
   * @param base array of the source, or null if it is off-heap
   * @param offset of row 0
   * @param rows selected rows; copies positions {@code from} (inclusive) to {@code to} (exclusive)
   */
  static void values(
      int width, Object base, long offset, int[] rows, int from, int to, long target) {
    switch (width) {
      case 1 -> bytes(base, offset, rows, from, to, target);
      case 2 -> shorts(base, offset, rows, from, to, target);
      case 4 -> ints(base, offset, rows, from, to, target);
      case 8 -> longs(base, offset, rows, from, to, target);
      default -> wide(base, offset, rows, from, to, target);
    }
  }

  private static void bytes(Object base, long offset, int[] rows, int from, int to, long target) {
    long at = target;
    for (int i = from; i < to; i++, at++) {
      Platform.putByte(null, at, Platform.getByte(base, offset + rows[i]));
    }
  }

  private static void shorts(Object base, long offset, int[] rows, int from, int to, long target) {
    long at = target;
    for (int i = from; i < to; i++, at += 2) {
      Platform.putShort(null, at, Platform.getShort(base, offset + 2L * rows[i]));
    }
  }

  private static void ints(Object base, long offset, int[] rows, int from, int to, long target) {
    long at = target;
    for (int i = from; i < to; i++, at += 4) {
      Platform.putInt(null, at, Platform.getInt(base, offset + 4L * rows[i]));
    }
  }

  private static void longs(Object base, long offset, int[] rows, int from, int to, long target) {
    long at = target;
    for (int i = from; i < to; i++, at += 8) {
      Platform.putLong(null, at, Platform.getLong(base, offset + 8L * rows[i]));
    }
  }

  private static void wide(Object base, long offset, int[] rows, int from, int to, long target) {
    long at = target;
    for (int i = from; i < to; i++, at += 16) {
      long value = offset + 16L * rows[i];
      Platform.putLong(null, at, Platform.getLong(base, value));
      Platform.putLong(null, at + 8, Platform.getLong(base, value + 8));
    }
  }
}
