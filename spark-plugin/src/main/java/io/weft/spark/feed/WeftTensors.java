package io.weft.spark.feed;

import io.weft.collectives.buffer.DataType;
import io.weft.spark.columns.TensorMetadata;
import io.weft.tensor.TensorType;
import java.util.Optional;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;

/**
 * Tensor columns: array, binary and dense ml-vector columns whose metadata says what array each
 * value is. The metadata travels with the column through Spark's own operators that keep it
 * (select, filter, join, Parquet), and nothing but Weft looks at it.
 *
 * <p>Under the key {@value #METADATA_KEY} lies {@code {"dtype": "float32", "shape": [3, 224, 224]}}
 * with the dtype's name as NumPy writes it, and the shape of one row's value, in C order. A first
 * dimension of -1 differs from row to row.
 *
 * <p>An array's elements must be of the dtype: float for float32, double for float64, byte, short,
 * int and long for int8 to int64, and short for the bits of float16 and bfloat16. A binary value is
 * the elements' bytes in the byte order of the machine. An ml vector is float64. That every row has
 * the shape is verified when the column is fed, where no row may be null, or uploaded to a GPU.
 */
public final class WeftTensors {
  /** Under which a column's metadata holds its tensor type. */
  public static final String METADATA_KEY = TensorMetadata.KEY;

  private WeftTensors() {}

  /**
   * A column of tensors, of the same name.
   *
   * @param name of an array, binary or dense ml-vector column at the top level
   * @param dtype of an element
   * @param shape of one row's value, at least one dimension, each 1 or more; the first may be -1
   *     where it varies
   */
  public static Column column(String name, DataType dtype, long... shape) {
    // A name with a dot in it would be taken for a field of a struct.
    return column(functions.col("`" + name.replace("`", "``") + "`"), name, dtype, shape);
  }

  /** As {@link #column(String, DataType, long...)} for any expression, under a name. */
  public static Column column(Column column, String name, DataType dtype, long... shape) {
    return column.as(name, metadata(dtype, shape));
  }

  /** What {@link #column(String, DataType, long...)} attaches. */
  public static Metadata metadata(DataType dtype, long... shape) {
    return TensorMetadata.of(dtype, shape);
  }

  /**
   * What tensor each of a column's values is.
   *
   * @return empty for a column without such metadata, and where the first dimension varies: see
   *     {@link #shapeOf}
   * @throws IllegalArgumentException if the metadata is there but damaged
   */
  public static Optional<TensorType> typeOf(StructField field) {
    return TensorMetadata.typeOf(field);
  }

  /**
   * The shape of a column's values as its metadata has it, -1 for a first dimension that varies.
   *
   * @return empty for a column without such metadata
   * @throws IllegalArgumentException if the metadata is there but damaged
   */
  public static Optional<long[]> shapeOf(StructField field) {
    return TensorMetadata.shapeOf(field);
  }

  /**
   * The element type of a column's values.
   *
   * @return empty for a column without such metadata
   * @throws IllegalArgumentException if the metadata is there but damaged
   */
  public static Optional<DataType> dtypeOf(StructField field) {
    return TensorMetadata.dtypeOf(field);
  }
}
