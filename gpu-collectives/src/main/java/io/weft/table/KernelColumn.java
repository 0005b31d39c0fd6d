package io.weft.table;

import io.weft.device.cuda.KernelArguments;
import java.util.List;

/**
 * A column as kernels see it, {@code struct column} of {@code src/main/cuda/partition.h}; addresses
 * are those of the moment it was made. Immutable.
 *
 * @param data address of the values, or of the bytes of strings
 * @param validity address of the validity bits; 0 where there always is a value
 * @param offsets address of the offsets of strings; else 0
 * @param bytes of all strings; else of one value
 * @param number among all columns of the table
 */
record KernelColumn(
    long data, long validity, long offsets, long bytes, ColumnKind kind, int number) {
  /** Columns of one launch. */
  static final int MOST = 64;

  /** Bytes of the struct. */
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

  /** With something else where the offsets are. */
  KernelColumn withOffsets(long other) {
    return new KernelColumn(data, validity, other, bytes, kind, number);
  }

  boolean isString() {
    return kind.isString();
  }

  boolean isNullable() {
    return validity != 0;
  }

  /** Whether one thread copies a value at once. */
  boolean isNarrow() {
    return !isString() && Long.bitCount(bytes) == 1 && bytes <= WIDEST_VALUE;
  }

  /** Whether several threads copy a value. */
  boolean isWide() {
    return !isString() && !isNarrow() && bytes > 0;
  }

  /** The last field of an argument: an array, of which not all need be used. */
  static void put(KernelArguments arguments, List<KernelColumn> columns) {
    for (KernelColumn column : columns) {
      arguments.putLong(column.data).putLong(column.validity).putLong(column.offsets);
      arguments.putLong(column.bytes).putInt(column.kind.code()).putInt(column.number);
    }
    arguments.fill();
  }
}
