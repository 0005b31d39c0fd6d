package io.weft.spark.gpu.cudf;

import ai.rapids.cudf.BaseDeviceMemoryBuffer;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.Table;
import io.weft.device.cuda.CudaStream;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.gpu.ColumnsCopy;
import io.weft.spark.gpu.ColumnsCopy.Sections;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.gpu.TableTypes;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Verifies the tables of cudf functions, and finds the memory of their columns. Stateless. */
final class CudfResult {
  private CudfResult() {}

  /**
   * Reads the columns of a cudf table, to copy them on cudf's own stream. The copies are therefore
   * ordered before any reuse of memory that cudf frees later.
   *
   * @param stream of cudf and this thread
   * @throws IllegalArgumentException if it does not have the declared columns, or is too large
   */
  static ColumnsCopy copyOf(Table table, DeviceWork work, CudaStream stream) {
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
    List<Sections> columns = new ArrayList<>();
    for (int c = 0; c < schema.size(); c++) {
      columns.add(sections(table.getColumn(c), schema.fields()[c]));
    }
    return ColumnsCopy.of(columns, (int) table.getRowCount(), work, stream);
  }

  /**
   * Reads a column of a function's table. cudf counts nulls and strings for it, which waits for the
   * device.
   *
   * @throws IllegalArgumentException if it is not of the declared type, has nulls although it is
   *     declared without, or more bytes of strings than a table holds
   */
  private static Sections sections(ColumnVector column, StructField field) {
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
      return ofBytes(column, field, new Sections(made, validity, offsets, 0, 0));
    }
    BaseDeviceMemoryBuffer data = column.getData();
    long bytes = kind.isString() ? length(data) : 0;
    if (kind.isString() && column.getRowCount() > 0) {
      requireShortOffsets(bytes, field, column);
    }
    return new Sections(made, validity, offsets, address(data), bytes);
  }

  private static Sections ofBytes(ColumnVector lists, StructField field, Sections without) {
    try (ColumnView bytes = lists.getChildColumnView(0)) {
      boolean isByte = bytes.getType().equals(DType.UINT8) || bytes.getType().equals(DType.INT8);
      if (!isByte || bytes.getNullCount() > 0) {
        throw wrong(field, "is binary, which is a list of UINT8 without nulls in cudf", bytes);
      }
      return new Sections(
          without.type(),
          without.validity(),
          without.offsets(),
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
