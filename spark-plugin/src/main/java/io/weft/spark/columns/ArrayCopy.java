package io.weft.spark.columns;

import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.unsafe.Platform;

/**
 * Copies the elements of a list column in bulk into an array of numbers in Spark's format:
 *
 * <pre>
 *   0               8                                  header
 *  +---------------+----------------------------------+-------------------------+
 *  | elements      | a bit each, all 0: none is null  | elements, padded with 0 |
 *  +---------------+----------------------------------+-------------------------+
 * </pre>
 *
 * <p>All arrays use the same memory, one after the other. Not thread-safe.
 */
final class ArrayCopy {
  /** Maximum length of a byte array in the JVM, with a margin. */
  private static final long MOST_BYTES = Integer.MAX_VALUE - 15;

  private final UnsafeArrayData array = new UnsafeArrayData();
  private final int width;
  private byte[] bytes = new byte[0];

  /**
   * @param width bytes of an element: 1, 2, 4 or 8
   */
  ArrayCopy(int width) {
    this.width = width;
  }

  /**
   * Copies elements [start, start + count) from an address. None of them is null.
   *
   * @return the array, valid until the next call
   * @throws IllegalArgumentException if the array would be longer than a Java array can be
   */
  UnsafeArrayData copy(long values, int start, int count) {
    int header = UnsafeArrayData.calculateHeaderPortionInBytes(count);
    long length = (long) width * count;
    long size = header + ((length + 7) & -8L);
    if (size > MOST_BYTES) {
      throw new IllegalArgumentException(
          "An array of " + count + " elements of " + width + " bytes is too long for a row");
    }
    reserve((int) size);
    // Clears the last word first, because the padding may have bytes of the previous array.
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + size - 8, 0);
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, count);
    for (int word = 8; word < header; word += 8) {
      Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + word, 0);
    }
    Platform.copyMemory(
        null, values + (long) width * start, bytes, Platform.BYTE_ARRAY_OFFSET + header, length);
    array.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET, (int) size);
    return array;
  }

  private void reserve(int size) {
    if (bytes.length < size) {
      bytes = new byte[(int) Math.min(MOST_BYTES, Math.max(64L, 2L * size))];
    }
  }
}
