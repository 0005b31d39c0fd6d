package io.weft.spark.columns;

import org.apache.spark.unsafe.Platform;

/** Copies bytes to off-heap memory. Short copies are inlined. */
final class BulkCopy {
  private static final int SHORT = 64;

  private BulkCopy() {}

  static void bytes(Object base, long offset, long target, long length) {
    if (length > SHORT) {
      Platform.copyMemory(base, offset, null, target, length);
    } else {
      few(base, offset, target, (int) length);
    }
  }

  /**
   * Copies whole words, then the last word aligned to the end, so that few branches depend on the
   * length.
   */
  private static void few(Object base, long offset, long target, int length) {
    if (length >= 8) {
      int last = length - 8;
      for (int at = 0; at < last; at += 8) {
        Platform.putLong(null, target + at, Platform.getLong(base, offset + at));
      }
      Platform.putLong(null, target + last, Platform.getLong(base, offset + last));
    } else if (length >= 4) {
      int last = length - 4;
      int first = Platform.getInt(base, offset);
      Platform.putInt(null, target + last, Platform.getInt(base, offset + last));
      Platform.putInt(null, target, first);
    } else {
      for (int at = 0; at < length; at++) {
        Platform.putByte(null, target + at, Platform.getByte(base, offset + at));
      }
    }
  }
}
