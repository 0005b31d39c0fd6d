package io.weft.spark.columns;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.bitset.BitSetMethods;

/**
 * Copies rows of vectors over a chunk into Spark's row format. The bytes are those of Spark's own
 * projection, but no object is created per value.
 *
 * <pre>
 *   row:    null bits, in words | a word per field                 | values of variable size
 *   array:  number of elements  | null bits, in words | elements   | values of variable size
 *   map:    bytes of the keys   | array of keys       | array of values
 * </pre>
 *
 * <p>The word of a value of variable size has its offset from the row or array and its bytes. It
 * reuses one row and its memory. For one task thread.
 */
final class RowPacker {
  /** Maximum length of a byte array in the JVM, with a margin. */
  private static final long MAX_BYTES = Integer.MAX_VALUE - 15;

  private static final long START = Platform.BYTE_ARRAY_OFFSET;

  /** Bytes that a long decimal takes in a row, even if it is null. */
  private static final int DECIMAL_BYTES = 16;

  /** Longest run of bytes that is copied word by word. */
  private static final int SHORT = 64;

  private final UnsafeRow row;
  private byte[] buffer = new byte[256];

  /** Where the next value of variable size goes, counted as {@link Platform} does. */
  private long cursor;

  /**
   * @param fields of a row
   */
  RowPacker(int fields) {
    row = new UnsafeRow(fields);
  }

  /** Whether it supports all columns, including nested ones. */
  static boolean supports(List<ColumnLayout> columns) {
    return columns.stream()
        .allMatch(
            column ->
                switch (column.form()) {
                  case NULL, OPAQUE, INTERVAL, VARIANT -> false;
                  default -> supports(column.children());
                });
  }

  /**
   * Copies a row.
   *
   * @return the row, valid until the next call
   * @throws IllegalArgumentException if the row would be longer than a Java array can be
   */
  UnsafeRow pack(BlockColumnVector[] columns, int index) {
    cursor = START;
    appendRow(columns, index);
    row.pointTo(buffer, (int) (cursor - START));
    return row;
  }

  private void appendRow(BlockColumnVector[] fields, int index) {
    long start = cursor;
    int nullBytes = UnsafeRow.calculateBitSetWidthInBytes(fields.length);
    reserve(nullBytes + 8L * fields.length);
    clear(start, start + nullBytes);
    cursor += nullBytes + 8L * fields.length;
    long word = start + nullBytes;
    for (int i = 0; i < fields.length; i++, word += 8) {
      BlockColumnVector field = fields[i];
      if (!field.isNullAt(index)) {
        setField(field, index, start, word);
      } else {
        BitSetMethods.set(buffer, start, i);
        setNull(field, start, word);
      }
    }
  }

  private void setField(BlockColumnVector field, int index, long start, long word) {
    switch (field.form()) {
      case BOOLEAN -> put(word, field.getBoolean(index) ? 1 : 0);
      case BYTE -> put(word, field.getByte(index) & 0xffL);
      case SHORT -> put(word, field.getShort(index) & 0xffffL);
      case INT, FLOAT -> put(word, field.getInt(index) & 0xffffffffL);
      case LONG, DOUBLE, DECIMAL64 -> put(word, field.getLong(index));
      case DECIMAL128 -> appendDecimal(field, index, start, word, DECIMAL_BYTES);
      default -> append(field, index, start, word);
    }
  }

  /** Spark keeps room for a long decimal that is null, so that it can be set later. */
  private void setNull(BlockColumnVector field, long start, long word) {
    if (field.form() == ColumnLayout.StorageForm.DECIMAL128) {
      reserve(DECIMAL_BYTES);
      clear(cursor, cursor + DECIMAL_BYTES);
      put(word, (cursor - start) << 32);
      cursor += DECIMAL_BYTES;
    } else {
      put(word, 0);
    }
  }

  /** Appends a string, a binary value or a nested value, and sets its word. */
  private void append(BlockColumnVector vector, int index, long start, long word) {
    long at = cursor;
    switch (vector.form()) {
      case STRUCT -> appendRow(vector.children(), index);
      case LIST -> {
        int first = vector.offset(index);
        appendArray(vector.getChild(0), first, vector.offset(index + 1) - first);
      }
      case MAP -> appendMap(vector, index);
      default -> {
        int first = vector.offset(index);
        int length = vector.offset(index + 1) - first;
        appendBytes(vector.values() + first, length);
        put(word, (at - start) << 32 | length);
        return;
      }
    }
    put(word, (at - start) << 32 | (cursor - at));
  }

  private void appendMap(BlockColumnVector map, int index) {
    int first = map.offset(index);
    int count = map.offset(index + 1) - first;
    long at = cursor;
    reserve(8);
    cursor += 8;
    appendArray(map.getChild(0), first, count);
    put(at, cursor - at - 8);
    appendArray(map.getChild(1), first, count);
  }

  private void appendArray(BlockColumnVector elements, int first, int count) {
    long start = cursor;
    int header = UnsafeArrayData.calculateHeaderPortionInBytes(count);
    int width = width(elements);
    long bytes = (long) width * count;
    long size = header + (bytes + 7 & -8L);
    reserve(size);
    // Clears the last word first, because its padding must be 0.
    put(start + size - 8, 0);
    put(start, count);
    clear(start + 8, start + header);
    cursor += size;
    long at = start + header;
    if (copies(elements)) {
      Platform.copyMemory(null, elements.values() + (long) width * first, buffer, at, bytes);
      setNulls(elements, first, count, start, width);
      return;
    }
    for (int i = 0; i < count; i++, at += width) {
      if (elements.isNullAt(first + i)) {
        setNull(start, i, at, width);
      } else {
        setElement(elements, first + i, start, at);
      }
    }
  }

  private void setNulls(BlockColumnVector elements, int first, int count, long start, int width) {
    if (!elements.hasNull()) {
      return;
    }
    long at = start + UnsafeArrayData.calculateHeaderPortionInBytes(count);
    for (int i = 0; i < count; i++, at += width) {
      if (elements.isNullAt(first + i)) {
        setNull(start, i, at, width);
      }
    }
  }

  private void setNull(long start, int index, long at, int width) {
    BitSetMethods.set(buffer, start + 8, index);
    for (int i = 0; i < width; i++) {
      Platform.putByte(buffer, at + i, (byte) 0);
    }
  }

  private void setElement(BlockColumnVector elements, int index, long start, long at) {
    switch (elements.form()) {
      case BOOLEAN -> Platform.putBoolean(buffer, at, elements.getBoolean(index));
      case DECIMAL128 -> appendDecimal(elements, index, start, at, 8);
      default -> append(elements, index, start, at);
    }
  }

  /** Whether elements have the same bytes in a chunk and in an array. */
  private static boolean copies(BlockColumnVector elements) {
    return switch (elements.form()) {
      case BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, DECIMAL64 -> true;
      default -> false;
    };
  }

  /** Bytes of an element in an array, or of the word of a value of variable size. */
  private static int width(BlockColumnVector elements) {
    return switch (elements.form()) {
      case BOOLEAN -> 1;
      case BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, DECIMAL64 -> elements.form().width();
      default -> 8;
    };
  }

  /**
   * @param least bytes that the decimal takes, 8 or 16
   */
  private void appendDecimal(
      BlockColumnVector vector, int index, long start, long word, int least) {
    reserve(DECIMAL_BYTES);
    long value = vector.values() + (long) DECIMAL_BYTES * index;
    int length = Decimal128.shortest(null, value, buffer, cursor);
    put(word, (cursor - start) << 32 | length);
    cursor += Math.max(least, length + 7 & -8);
  }

  private void appendBytes(long from, int length) {
    long size = length + 7L & -8L;
    reserve(size);
    long at = cursor;
    cursor += size;
    if (length < 8) {
      if (length > 0) {
        put(at, fewBytes(from, length));
      }
      return;
    }
    int rest = length & 7;
    if (rest != 0) {
      // The last word has the last bytes, followed by zeros.
      put(at + size - 8, Platform.getLong(null, from + length - 8) >>> (64 - 8 * rest));
    }
    int whole = length - rest;
    if (length > SHORT) {
      Platform.copyMemory(null, from, buffer, at, whole);
    } else {
      for (int i = 0; i < whole; i += 8) {
        put(at + i, Platform.getLong(null, from + i));
      }
    }
  }

  /** Reads 1 to 7 bytes as the low bytes of a word. */
  private static long fewBytes(long from, int length) {
    if (length >= 4) {
      long high = Platform.getInt(null, from + length - 4) & 0xffffffffL;
      return (Platform.getInt(null, from) & 0xffffffffL) | (high << (8 * (length - 4)));
    }
    long word = 0;
    for (int i = length - 1; i >= 0; i--) {
      word = word << 8 | (Platform.getByte(null, from + i) & 0xff);
    }
    return word;
  }

  private void put(long at, long value) {
    Platform.putLong(buffer, at, value);
  }

  private void clear(long from, long to) {
    for (long at = from; at < to; at += 8) {
      put(at, 0);
    }
  }

  private void reserve(long more) {
    long size = cursor - START + more;
    if (size > buffer.length) {
      grow(size);
    }
  }

  private void grow(long size) {
    if (size > MAX_BYTES) {
      throw new IllegalArgumentException(
          "A row of more than " + MAX_BYTES + " bytes is too long for Spark's row format");
    }
    byte[] grown = new byte[(int) Math.min(MAX_BYTES, 2 * size)];
    System.arraycopy(buffer, 0, grown, 0, (int) (cursor - START));
    buffer = grown;
  }
}
