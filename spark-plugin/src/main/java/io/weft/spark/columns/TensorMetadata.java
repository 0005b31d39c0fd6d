package io.weft.spark.columns;

import io.weft.collectives.DataType;
import io.weft.tensor.TensorType;
import java.util.Arrays;
import java.util.NoSuchElementException;
import java.util.Optional;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;

/**
 * Reads and writes the tensor type in a column's metadata: the key {@value #KEY} has a value like
 * {@code {"dtype": "float32", "shape": [3, 224, 224]}}. Stateless.
 */
public final class TensorMetadata {
  /** Key of the tensor type in a column's metadata. */
  public static final String KEY = "weft.tensor";

  private static final String DTYPE_KEY = "dtype";
  private static final String SHAPE_KEY = "shape";

  private TensorMetadata() {}

  /**
   * Creates the metadata of a column of tensors.
   *
   * @param shape of one row's value, at least one dimension, each 1 or more; the first may be -1 if
   *     it varies
   * @throws IllegalArgumentException if the shape is invalid
   */
  public static Metadata of(DataType dtype, long... shape) {
    check(shape);
    Metadata tensor =
        new MetadataBuilder()
            .putString(DTYPE_KEY, dtype.toString())
            .putLongArray(SHAPE_KEY, shape)
            .build();
    return new MetadataBuilder().putMetadata(KEY, tensor).build();
  }

  private static void check(long... shape) {
    boolean valid = shape.length > 0 && shape.length < TensorType.MAX_DIMENSIONS;
    long elements = 1;
    for (int i = 0; valid && i < shape.length; i++) {
      valid = shape[i] >= 1 || (i == 0 && shape[i] == -1);
      valid &= shape[i] <= Integer.MAX_VALUE / elements;
      elements *= Math.abs(shape[i]);
    }
    if (!valid) {
      throw new IllegalArgumentException(
          ("a tensor column has 1 to %d dimensions, each 1 or more, the first also -1, and below"
                  + " 2^31 elements; not %s")
              .formatted(TensorType.MAX_DIMENSIONS - 1, Arrays.toString(shape)));
    }
  }

  /**
   * Returns the tensor type of a column whose values all have the same shape.
   *
   * @return empty for a column without such metadata, or if the first dimension varies
   * @throws IllegalArgumentException if the metadata is malformed
   */
  public static Optional<TensorType> typeOf(StructField field) {
    return shapeOf(field)
        .filter(shape -> shape[0] >= 0)
        .map(shape -> TensorType.of(dtypeOf(field).orElseThrow(), shape));
  }

  /**
   * Returns the shape in a column's metadata, with -1 for a variable first dimension.
   *
   * @return empty for a column without such metadata
   * @throws IllegalArgumentException if the metadata is malformed
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
   * Returns the element type in a column's metadata.
   *
   * @return empty for a column without such metadata
   * @throws IllegalArgumentException if the metadata is malformed
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

  /** Returns the element type of a Spark type; empty if it is not a number of fixed width. */
  public static Optional<DataType> elementType(org.apache.spark.sql.types.DataType type) {
    return Optional.ofNullable(
        switch (type.typeName()) {
          case "byte" -> DataType.INT8;
          case "short" -> DataType.INT16;
          case "integer" -> DataType.INT32;
          case "long" -> DataType.INT64;
          case "float" -> DataType.FLOAT32;
          case "double" -> DataType.FLOAT64;
          default -> null;
        });
  }

  /** Whether elements of a Spark array have the same bits as elements of a tensor. */
  public static boolean fits(org.apache.spark.sql.types.DataType element, DataType dtype) {
    boolean half = dtype == DataType.FLOAT16 || dtype == DataType.BFLOAT16;
    return elementType(element).filter(half ? DataType.INT16::equals : dtype::equals).isPresent();
  }

  private static Optional<Metadata> tensor(StructField field) {
    try {
      return field.metadata().contains(KEY)
          ? Optional.of(field.metadata().getMetadata(KEY))
          : Optional.empty();
    } catch (ClassCastException e) {
      throw damaged(field, e);
    }
  }

  private static IllegalArgumentException damaged(StructField field, Exception cause) {
    return new IllegalArgumentException(
        "column %s: its metadata under %s is not a tensor's: %s"
            .formatted(field.name(), KEY, field.metadata()),
        cause);
  }
}
