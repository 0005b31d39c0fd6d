package io.weft.spark.sql;

import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Estimates the bytes of tables on GPUs in Spark's row format. Adaptive execution uses this size
 * for broadcasts. Stateless.
 */
final class RowBytes {
  private RowBytes() {}

  /**
   * Estimates the bytes of all rows of a table on a GPU without reading it. A string counts half a
   * word for padding, and a null tensor counts like a non-null one.
   */
  static long of(TableLayout layout, StructType schema) {
    long row = UnsafeRow.calculateBitSetWidthInBytes(schema.size()) + 8L * schema.size();
    long strings = 0;
    for (int c = 0; c < schema.size(); c++) {
      TableColumn column = layout.columns().get(c);
      ColumnKind kind = column.kind();
      if (kind.isString()) {
        strings += layout.stringBytes(c) + 4L * layout.rows();
      } else if (kind == ColumnKind.DECIMAL128) {
        row += 16;
      } else if (kind == ColumnKind.TENSOR) {
        row += tensor(column, schema.fields()[c].dataType());
      }
    }
    return row * layout.rows() + strings;
  }

  /**
   * Bytes of a tensor after its word in the row, in whole words; for an array including its header.
   */
  private static long tensor(TableColumn column, DataType type) {
    long head =
        type instanceof BinaryType
            ? 0
            : UnsafeArrayData.calculateHeaderPortionInBytes(column.tensor().elements());
    return head + (column.width() + 7 & -8L);
  }
}
