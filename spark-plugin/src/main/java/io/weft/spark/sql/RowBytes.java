package io.weft.spark.sql;

import io.weft.table.ColumnKind;
import io.weft.table.TableLayout;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
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
   * Bytes of all rows of a table on a device, without a look at them: a value of variable length
   * counts half a word for what is behind it.
   */
  static long of(TableLayout layout, StructType schema) {
    long row = UnsafeRow.calculateBitSetWidthInBytes(schema.size()) + 8L * schema.size();
    long strings = 0;
    for (int c = 0; c < schema.size(); c++) {
      ColumnKind kind = layout.columns().get(c).kind();
      if (kind.isString()) {
        strings += layout.stringBytes(c) + 4L * layout.rows();
      } else if (kind == ColumnKind.DECIMAL128) {
        row += 16;
      }
    }
    return row * layout.rows() + strings;
  }

  private UnsafeProjection rowProjection() {
    if (projection == null) {
      projection = UnsafeProjection.create(schema);
    }
    return projection;
  }
}
