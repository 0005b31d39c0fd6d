package io.weft.spark.sql;

import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Computes the bytes of batches in Spark's row format. Adaptive execution uses this size for
 * broadcasts, so it decides the same on both routes. Exact if all columns have a fixed width, else
 * estimated from sampled rows of each batch. For one task thread.
 */
final class RowBytes {
  /** Sampled rows per batch: enough for a mean, and few enough to be cheap. */
  private static final int SAMPLES = 32;

  private final StructType schema;
  private final boolean fixedWidth;
  private UnsafeProjection projection;

  RowBytes(StructType schema) {
    this.schema = schema;
    this.fixedWidth =
        Arrays.stream(schema.fields()).allMatch(field -> UnsafeRow.isFixedLength(field.dataType()));
  }

  /** Returns the bytes of all rows of a batch. */
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

  private UnsafeProjection rowProjection() {
    if (projection == null) {
      projection = UnsafeProjection.create(schema);
    }
    return projection;
  }
}
