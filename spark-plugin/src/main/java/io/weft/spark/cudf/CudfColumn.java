package io.weft.spark.cudf;

import ai.rapids.cudf.BaseDeviceMemoryBuffer;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.DType;
import io.weft.spark.gpu.TableTypes;
import io.weft.table.ColumnKind;
import io.weft.table.TableColumn;
import org.apache.spark.sql.types.StructField;

/**
 * The memory of a cudf column, as far as a Weft table can hold the column.
 *
 * @param type its type in a table, with validity if it has nulls
 * @param validity address of its validity bits; 0 for none
 * @param offsets address of its offsets of 4 bytes; 0 for none
 * @param data address of its values or bytes; 0 if there are none
 * @param stringBytes bytes of all its strings; 0 for others
 */
record CudfColumn(TableColumn type, long validity, long offsets, long data, long stringBytes) {
  /**
   * Reads a column of a function's table. cudf counts nulls and strings for it, which waits for the
   * device.
   *
   * @throws IllegalArgumentException if it is not of the declared type, has nulls although it is
   *     declared without, or more bytes of strings than a table holds
   */
  static CudfColumn of(ColumnVector column, StructField field) {
    DType expected = CudfTypes.of(field);
    if (!column.getType().equals(expected)) {
      throw wrong(field, "is %s, which is %s in cudf".formatted(type(field), expected), column);
    }
    long nulls = column.getNullCount();
    if (nulls > 0 && !field.nullable()) {
      throw wrong(field, "is declared without nulls", column);
    }
    TableColumn made = TableTypes.column(field, nulls > 0).orElseThrow();
    ColumnKind kind = made.kind();
    long validity = nulls > 0 ? address(column.getValid()) : 0;
    long offsets = kind.isString() ? address(column.getOffsets()) : 0;
    if (kind == ColumnKind.BINARY) {
      return ofBytes(column, field, new CudfColumn(made, validity, offsets, 0, 0));
    }
    BaseDeviceMemoryBuffer data = column.getData();
    long bytes = kind.isString() ? length(data) : 0;
    if (kind.isString() && column.getRowCount() > 0) {
      requireShortOffsets(bytes, field, column);
    }
    return new CudfColumn(made, validity, offsets, address(data), bytes);
  }

  private static CudfColumn ofBytes(ColumnVector lists, StructField field, CudfColumn without) {
    try (ColumnView bytes = lists.getChildColumnView(0)) {
      boolean isByte = bytes.getType().equals(DType.UINT8) || bytes.getType().equals(DType.INT8);
      if (!isByte || bytes.getNullCount() > 0) {
        throw wrong(field, "is binary, which is a list of UINT8 without nulls in cudf", bytes);
      }
      return new CudfColumn(
          without.type,
          without.validity,
          without.offsets,
          address(bytes.getData()),
          bytes.getRowCount());
    }
  }

  /**
   * Verifies that offsets have 4 bytes. Above a size limit, which its environment may lower, cudf
   * uses string offsets of 8 bytes. The length that cudf reports for the offsets assumes 4 bytes;
   * the length of a whole column does not.
   */
  private static void requireShortOffsets(long bytes, StructField field, ColumnView column) {
    if (bytes >= Integer.MAX_VALUE) {
      throw wrong(
          field,
          "can have fewer than %d bytes of strings in a batch, not %d: make tables of fewer rows"
              .formatted(Integer.MAX_VALUE, bytes),
          column);
    }
    long offsets = column.getDeviceMemorySize() - bytes - length(column.getValid());
    if (offsets > length(column.getOffsets())) {
      throw wrong(
          field,
          ("has offsets of %d bytes in all, but offsets of 4 bytes each take %d: a batch takes no"
                  + " others. Leave LIBCUDF_LARGE_STRINGS_THRESHOLD of executors unset")
              .formatted(offsets, length(column.getOffsets())),
          column);
    }
  }

  private static long length(BaseDeviceMemoryBuffer buffer) {
    return buffer == null ? 0 : buffer.getLength();
  }

  private static String type(StructField field) {
    return field.dataType().simpleString();
  }

  private static IllegalArgumentException wrong(StructField field, String what, ColumnView column) {
    return new IllegalArgumentException(
        "column %s of a table that a function of cudf made: %s; it is %s with %d nulls"
            .formatted(field.name(), what, column.getType(), column.getNullCount()));
  }

  private static long address(BaseDeviceMemoryBuffer buffer) {
    return buffer == null ? 0 : buffer.getAddress();
  }
}
