package io.weft.spark.sql;

import io.weft.table.ColumnKind;
import io.weft.table.TableColumn;
import io.weft.table.TableLayout;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * How many bytes the rows of batches would take as Spark's own rows: the measure by which adaptive
 * execution decides on broadcasts, so that it decides the same on either route. Exact where all
 * columns have a fixed width, else estimated from some rows of each batch. One task thread.
 */
final class RowBytes {
  /** Rows looked at per batch: enough for a mean, few enough not to show in the time. */
  private static final int SAMPLES = 32;

  private final StructType schema;
  private final boolean fixedWidth;
  private UnsafeProjection projection;

  RowBytes(StructType schema) {
    this.schema = schema;
    this.fixedWidth =
        Arrays.stream(schema.fields()).allMatch(field -> UnsafeRow.isFixedLength(field.dataType()));
  }

  /** Bytes of all rows of a batch. */
  long of(ColumnarBatch batch) {
    int rows = batch.numRows();
    if (rows == 0) {
      return 0;
    }
    if (fixedWidth) {
      int words = UnsafeRow.calculateBitSetWidthInBytes(schema.size()) + 8 * schema.size();
      return (long) rows * words;
    }
    int step = Math.max(1, rows / SAMPLES);
    long bytes = 0;
    int samples = 0;
    for (int row = 0; row < rows; row += step) {
      bytes += rowProjection().apply(batch.getRow(row)).getSizeInBytes();
      samples++;
    }
    return Math.round((double) bytes / samples * rows);
  }

  /**
   * Bytes of all rows of a table on a device, without a look at them: a string counts half a word
   * for what is behind it, and a tensor that is null as any other.
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

  /** What is behind the word of a tensor, in whole words: of an array also its head. */
  private static long tensor(TableColumn column, DataType type) {
    long head =
        type instanceof BinaryType
            ? 0
            : UnsafeArrayData.calculateHeaderPortionInBytes(column.tensor().elements());
    return head + (column.width() + 7 & -8L);
  }

  private UnsafeProjection rowProjection() {
    if (projection == null) {
      projection = UnsafeProjection.create(schema);
    }
    return projection;
  }
}
