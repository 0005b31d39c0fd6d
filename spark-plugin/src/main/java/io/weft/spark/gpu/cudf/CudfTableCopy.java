package io.weft.spark.gpu.cudf;

import ai.rapids.cudf.BaseDeviceMemoryBuffer;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.Table;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.gpu.TableTypes;
import io.weft.spark.gpu.cudf.CudfCall.CudfCleanup;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Copies a cudf table into one run, on cudf's own stream. The copies are therefore ordered behind
 * the work that makes the table, and before any reuse of memory that cudf frees later. For one
 * thread.
 */
final class CudfTableCopy {
  private final List<CudfColumn> columns;
  private final TableLayout layout;
  private final DeviceWork work;
  private final CudaStream stream;

  private CudfTableCopy(
      List<CudfColumn> columns, TableLayout layout, DeviceWork work, CudaStream stream) {
    this.columns = columns;
    this.layout = layout;
    this.work = work;
    this.stream = stream;
  }

  /**
   * Reads the columns of a cudf table.
   *
   * @param stream of cudf and this thread
   * @throws IllegalArgumentException if it does not have the declared columns, or is too large
   */
  static CudfTableCopy of(Table table, DeviceWork work, CudaStream stream) {
    StructType schema = work.schema();
    if (table.getNumberOfColumns() != schema.size()) {
      throw new IllegalArgumentException(
          "a function of cudf made a table of %d columns; declared are %d: %s"
              .formatted(table.getNumberOfColumns(), schema.size(), schema.simpleString()));
    }
    if (table.getRowCount() > TableLayout.MAX_ROWS) {
      throw new IllegalArgumentException(
          "a function of cudf made a table of %d rows; a batch has at most %d"
              .formatted(table.getRowCount(), TableLayout.MAX_ROWS));
    }
    List<CudfColumn> columns = new ArrayList<>();
    List<TableColumn> types = new ArrayList<>();
    long[] stringBytes = new long[schema.size()];
    for (int c = 0; c < schema.size(); c++) {
      CudfColumn column = CudfColumn.of(table.getColumn(c), schema.fields()[c]);
      columns.add(column);
      types.add(column.type());
      stringBytes[c] = column.stringBytes();
    }
    TableLayout layout = TableLayout.of(types, (int) table.getRowCount(), stringBytes);
    return new CudfTableCopy(columns, layout, work, stream);
  }

  /** Enqueues the copies; afterwards the cudf table may be closed on this thread. */
  DeviceTable pack() {
    CudaMemory memory = work.take(layout.bytes());
    try {
      copy(memory.address());
      Event copied = work.lane().after("a table of cudf, " + layout, stream);
      memory.usedUntil(copied);
      return DeviceTable.of(memory, layout, copied);
    } catch (Throwable e) {
      giveBack(memory, e);
      throw e;
    }
  }

  private void giveBack(CudaMemory memory, Throwable cause) {
    try (memory) {
      CudfCleanup.end("copies of a table of cudf", work, stream, memory::usedUntil, cause);
    }
  }

  private void copy(long run) {
    for (int c = 0; c < columns.size(); c++) {
      CudfColumn column = columns.get(c);
      if (column.type().nullable()) {
        put(column.validity(), run + layout.validity(c), (layout.rows() + 7L) / 8);
      }
      if (column.type().kind().isString()) {
        putOffsets(column.offsets(), run + layout.offsets(c));
      }
      put(column.data(), run + layout.data(c), layout.dataBytes(c));
    }
  }

  private void putOffsets(long from, long to) {
    if (layout.rows() > 0) {
      put(from, to, (layout.rows() + 1L) * Integer.BYTES);
    } else {
      // A cudf column without rows may have no offsets; a table has one offset, zero.
      stream.clear(to, TableLayout.ALIGNMENT);
    }
  }

  /** Enqueues the copy of a section, and zeros up to the next one. */
  private void put(long from, long to, long bytes) {
    if (bytes > 0) {
      stream.copyOnDevice(to, from, bytes);
    }
    long rest = -bytes & (TableLayout.ALIGNMENT - 1);
    if (rest > 0) {
      stream.clear(to + bytes, rest);
    }
  }

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
     * Reads a column of a function's table. cudf counts nulls and strings for it, which waits for
     * the device.
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

    private static IllegalArgumentException wrong(
        StructField field, String what, ColumnView column) {
      return new IllegalArgumentException(
          "column %s of a table that a function of cudf made: %s; it is %s with %d nulls"
              .formatted(field.name(), what, column.getType(), column.getNullCount()));
    }

    private static long address(BaseDeviceMemoryBuffer buffer) {
      return buffer == null ? 0 : buffer.getAddress();
    }
  }
}
