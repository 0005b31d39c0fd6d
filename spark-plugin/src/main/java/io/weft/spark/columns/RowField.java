package io.weft.spark.columns;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import scala.Function2;

/** Sets one field of a row to a non-null value of a column. */
@FunctionalInterface
interface RowField {
  /**
   * Sets the field.
   *
   * @param the row to change
   * @param vector the column
   * @param source the row of the batch
   * @param index of the source row
   */
  void set(InternalRow row, ColumnVector vector, InternalRow source, int index);

  /**
   * Returns the setter for a type: bulk copies for arrays of numbers, primitive setters for common
   * numbers, objects for all other types.
   */
  static RowField of(int ordinal, DataType type) {
    if (type instanceof ArrayType array && BatchRows.width(array) > 0) {
      return array(ordinal, BatchRows.width(array), any(ordinal, type));
    }
    if (type instanceof LongType || type instanceof TimestampType) {
      return (row, vector, source, index) -> row.setLong(ordinal, vector.getLong(index));
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return (row, vector, source, index) -> row.setInt(ordinal, vector.getInt(index));
    }
    if (type instanceof DoubleType) {
      return (row, vector, source, index) -> row.setDouble(ordinal, vector.getDouble(index));
    }
    if (type instanceof FloatType) {
      return (row, vector, source, index) -> row.setFloat(ordinal, vector.getFloat(index));
    }
    return any(ordinal, type);
  }

  private static RowField any(int ordinal, DataType type) {
    Function2<SpecializedGetters, Object, Object> getter = InternalRow.getAccessor(type, false);
    return (row, vector, source, index) -> row.update(ordinal, getter.apply(source, ordinal));
  }

  /** Falls back to Spark for arrays with nulls and for vectors of other classes. */
  private static RowField array(int ordinal, int width, RowField otherwise) {
    ArrayCopy copy = new ArrayCopy(width);
    return (row, vector, source, index) -> {
      if (vector instanceof BlockColumnVector list && !list.getChild(0).hasNull()) {
        int start = list.offset(index);
        int count = list.offset(index + 1) - start;
        row.update(ordinal, copy.copy(list.getChild(0).values(), start, count));
      } else if (vector instanceof TensorVector tensors && tensors.hasTensors()) {
        row.update(ordinal, copy.copy(tensors.elements(index), 0, tensors.elementsOfValue()));
      } else {
        otherwise.set(row, vector, source, index);
      }
    };
  }
}
