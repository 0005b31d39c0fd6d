package io.weft.spark.feed;

import io.weft.collectives.buffer.DataType;
import io.weft.tensor.TensorType;
import java.util.Arrays;
import java.util.NoSuchElementException;
import java.util.Optional;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
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
 * the shape, and no null, is verified when the column is fed.
 */
public final class WeftTensors {
  /** Under which a column's metadata holds its tensor type. */
  public static final String METADATA_KEY = "weft.tensor";

  private static final String DTYPE_KEY = "dtype";
  private static final String SHAPE_KEY = "shape";

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
    check(shape);
    Metadata tensor =
        new MetadataBuilder()
            .putString(DTYPE_KEY, dtype.toString())
            .putLongArray(SHAPE_KEY, shape)
            .build();
    return new MetadataBuilder().putMetadata(METADATA_KEY, tensor).build();
  }

  private static void check(long... shape) {
    boolean valid = shape.length > 0 && shape.length < TensorType.MOST_DIMENSIONS;
    long elements = 1;
    for (int i = 0; valid && i < shape.length; i++) {
      valid = shape[i] >= 1 || (i == 0 && shape[i] == -1);
      valid &= shape[i] <= Integer.MAX_VALUE / elements;
      elements *= Math.abs(shape[i]);
    }
    if (!valid) {
      throw new IllegalArgumentException(
          "a tensor column has 1 to %d dimensions, each 1 or more, the first also -1, and below 2^31 elements; not %s"
              .formatted(TensorType.MOST_DIMENSIONS - 1, Arrays.toString(shape)));
    }
  }

  /**
   * What tensor each of a column's values is.
   *
   * @return empty for a column without such metadata, and where the first dimension varies: see
   *     {@link #shapeOf}
   * @throws IllegalArgumentException if the metadata is there but damaged
   */
  public static Optional<TensorType> typeOf(StructField field) {
    return shapeOf(field)
        .filter(shape -> shape[0] >= 0)
        .map(shape -> TensorType.of(dtypeOf(field).orElseThrow(), shape));
  }

  /**
   * The shape of a column's values as its metadata has it, -1 for a first dimension that varies.
   *
   * @return empty for a column without such metadata
   * @throws IllegalArgumentException if the metadata is there but damaged
   */
  public static Optional<long[]> shapeOf(StructField field) {
    return tensor(field)
        .map(
            tensor -> {
              try {
                long[] shape = tensor.getLongArray(SHAPE_KEY);
                check(shape);
                return shape;
              } catch (NoSuchElementException | ClassCastException | IllegalArgumentException e) {
                throw damaged(field, e);
              }
            });
  }

  /**
   * The element type of a column's values.
   *
   * @return empty for a column without such metadata
   * @throws IllegalArgumentException if the metadata is there but damaged
   */
  public static Optional<DataType> dtypeOf(StructField field) {
    return tensor(field)
        .map(
            tensor -> {
              try {
                return DataType.parse(tensor.getString(DTYPE_KEY));
              } catch (NoSuchElementException | ClassCastException | IllegalArgumentException e) {
                throw damaged(field, e);
              }
            });
  }

  private static Optional<Metadata> tensor(StructField field) {
    return field.metadata().contains(METADATA_KEY)
        ? Optional.of(field.metadata().getMetadata(METADATA_KEY))
        : Optional.empty();
  }

  private static IllegalArgumentException damaged(StructField field, Exception cause) {
    return new IllegalArgumentException(
        "column %s: its metadata under %s is no tensor's: %s"
            .formatted(field.name(), METADATA_KEY, field.metadata()),
        cause);
  }
}
