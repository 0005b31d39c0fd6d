package io.weft.spark.columns;

import java.util.Arrays;
import java.util.Iterator;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Converts batches to rows and copies arrays of numbers in bulk. Spark's own conversion makes two
 * virtual calls for each element.
 *
 * <p>It reuses one row object, which is valid until the next row. For one task thread.
 */
public final class BatchRows {
  private final SpecificInternalRow row;
  private final RowField[] fields;
  private final UnsafeProjection projection;

  /**
   * @param schema of all batches
   */
  public BatchRows(StructType schema) {
    DataType[] types =
        Arrays.stream(schema.fields()).map(StructField::dataType).toArray(DataType[]::new);
    row = new SpecificInternalRow(schema);
    fields =
        IntStream.range(0, types.length)
            .mapToObj(ordinal -> RowField.of(ordinal, types[ordinal]))
            .toArray(RowField[]::new);
    projection = UnsafeProjection.create(schema);
  }

  /** Whether a schema has a column of arrays of numbers, so that this conversion pays. */
  public static boolean pay(StructType schema) {
    return Arrays.stream(schema.fields())
        .anyMatch(field -> field.dataType() instanceof ArrayType array && width(array) > 0);
  }

  /**
   * Returns the bytes of an element if Spark stores elements in the same fixed-width format; else
   * 0.
   */
  static int width(ArrayType array) {
    Form form = ColumnLayout.of("element", array.elementType()).form();
    return switch (form) {
      case BYTE, SHORT, INT, LONG, FLOAT, DOUBLE -> form.width();
      default -> 0;
    };
  }

  /**
   * The rows of a batch, in its order.
   *
   * @param batch must stay valid while its rows are read
   */
  public Iterator<InternalRow> of(ColumnarBatch batch) {
    ColumnVector[] vectors =
        IntStream.range(0, fields.length).mapToObj(batch::column).toArray(ColumnVector[]::new);
    int rows = batch.numRows();
    return new Iterator<>() {
      private int next;

      @Override
      public boolean hasNext() {
        return next < rows;
      }

      @Override
      public InternalRow next() {
        return row(batch, vectors, next++);
      }
    };
  }

  private UnsafeRow row(ColumnarBatch batch, ColumnVector[] vectors, int index) {
    InternalRow source = batch.getRow(index);
    for (int i = 0; i < vectors.length; i++) {
      if (vectors[i].isNullAt(index)) {
        row.setNullAt(i);
      } else {
        fields[i].set(row, vectors[i], source, index);
      }
    }
    return projection.apply(row);
  }
}
