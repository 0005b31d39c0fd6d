package io.weft.shuffle.device;

import io.weft.device.cuda.KernelArguments;
import java.util.List;

/**
 * A column in the form of {@code struct column} of {@code src/main/cuda/partition.h}. Its addresses
 * are those at creation. Immutable.
 *
 * @param data address of the values, or of the bytes of strings
 * @param validity address of the validity bits; 0 if the column is not nullable
 * @param offsets address of the offsets of strings; else 0
 * @param bytes of all strings; else of one value
 * @param number among all columns of the table
 */
record KernelColumn(
    long data, long validity, long offsets, long bytes, ColumnKind kind, int number) {
  /** The limit of columns in one launch. */
  static final int MAX_COLUMNS = 64;

  /** The size of the struct in bytes. */
  static final int BYTES = 40;

  private static final long WIDEST_VALUE = 16;

  /** The column of a table. */
  static KernelColumn of(DeviceTable table, int number) {
    TableLayout layout = table.layout();
    TableColumn type = layout.columns().get(number);
    boolean isString = type.kind().isString();
    return new KernelColumn(
        table.address() + layout.data(number),
        type.nullable() ? table.address() + layout.validity(number) : 0,
        isString ? table.address() + layout.offsets(number) : 0,
        isString ? layout.stringBytes(number) : type.width(),
        type.kind(),
        number);
  }

  /** A copy with other offsets. */
  KernelColumn withOffsets(long other) {
    return new KernelColumn(data, validity, other, bytes, kind, number);
  }

  /** A copy with another number. */
  KernelColumn withNumber(int other) {
    return new KernelColumn(data, validity, offsets, bytes, kind, other);
  }

  boolean isString() {
    return kind.isString();
  }

  boolean isNullable() {
    return validity != 0;
  }

  /** Whether one thread copies a whole value. */
  boolean isNarrow() {
    return !isString() && Long.bitCount(bytes) == 1 && bytes <= WIDEST_VALUE;
  }

  /** Whether several threads copy a value. */
  boolean isWide() {
    return !isString() && !isNarrow() && bytes > 0;
  }

  /** Adds the last field of an argument: an array that may be partly used. */
  static void put(KernelArguments arguments, List<KernelColumn> columns) {
    for (KernelColumn column : columns) {
      arguments.putLong(column.data).putLong(column.validity).putLong(column.offsets);
      arguments.putLong(column.bytes).putInt(column.kind.code()).putInt(column.number);
    }
    arguments.fill();
  }
}
