package io.weft.spark.feed;

import io.weft.collectives.DataType;
import io.weft.spark.columns.TensorMetadata;
import io.weft.tensor.TensorType;
import java.util.Optional;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;

/**
 * Tensor columns: array, binary and dense ml-vector columns whose metadata gives the array type of
 * each value. The metadata stays with the column in Spark's own operators that keep it (select,
 * filter, join, Parquet); only Weft reads it.
 *
 * <p>The value under the key {@value #METADATA_KEY} is {@code {"dtype": "float32", "shape": [3,
 * 224, 224]}} with the dtype's name as NumPy writes it, and the shape of one row's value, in C
 * order. A first dimension of -1 varies from row to row.
 *
 * <p>An array's elements must be of the dtype: float for float32, double for float64, byte, short,
 * int and long for int8 to int64, and short for the bits of float16 and bfloat16. A binary value
 * holds the elements' bytes in native byte order. An ml vector is float64. The shape of every row
 * is verified when the column is fed or uploaded to a GPU. A fed column must not have nulls.
 */
public final class WeftTensors {
  /** The key of the tensor type in a column's metadata. */
  public static final String METADATA_KEY = TensorMetadata.KEY;

  private WeftTensors() {}

  /**
   * Makes a column of tensors, with the same name.
   *
   * @param name of an array, binary or dense ml-vector column at the top level
   * @param dtype of an element
   * @param shape of one row's value, at least one dimension, each 1 or more; the first may be -1 if
   *     it varies
   */
  public static Column column(String name, DataType dtype, long... shape) {
    // Spark would read a name with a dot as a field of a struct.
    return column(functions.col("`" + name.replace("`", "``") + "`"), name, dtype, shape);
  }

  /** Like {@link #column(String, DataType, long...)} for any expression, under a name. */
  public static Column column(Column column, String name, DataType dtype, long... shape) {
    return column.as(name, metadata(dtype, shape));
  }

  /** The metadata that {@link #column(String, DataType, long...)} attaches. */
  public static Metadata metadata(DataType dtype, long... shape) {
    return TensorMetadata.of(dtype, shape);
  }

  /**
   * Returns the tensor type of each of a column's values.
   *
   * @return empty for a column without such metadata, and if the first dimension varies: see {@link
   *     #shapeOf}
   * @throws IllegalArgumentException if the metadata is present but malformed
   */
  public static Optional<TensorType> typeOf(StructField field) {
    return TensorMetadata.typeOf(field);
  }

  /**
   * Returns the shape of a column's values from its metadata, -1 for a first dimension that varies.
   *
   * @return empty for a column without such metadata
   * @throws IllegalArgumentException if the metadata is present but malformed
   */
  public static Optional<long[]> shapeOf(StructField field) {
    return TensorMetadata.shapeOf(field);
  }

  /**
   * Returns the element type of a column's values.
   *
   * @return empty for a column without such metadata
   * @throws IllegalArgumentException if the metadata is present but malformed
   */
  public static Optional<DataType> dtypeOf(StructField field) {
    return TensorMetadata.dtypeOf(field);
  }
}
