package io.weft.spark.feed.arrow;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.spark.columns.BlockColumnVector;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.columns.TensorMetadata;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;

/**
 * A column that can be viewed as a tensor, and where its vectors hold the elements. Immutable.
 *
 * @param ordinal in the feed's schema
 * @param name of the column
 * @param source how a value stores its elements
 * @param dtype of the elements
 * @param dimensions of one value, -1 first if it varies; empty for a plain number
 */
public record TensorColumn(
    int ordinal, String name, Source source, DataType dtype, List<Long> dimensions)
    implements Serializable {
  /** Field numbers of an ml vector. */
  public static final int VECTOR_KIND = 0;

  public static final int VECTOR_VALUES = 3;
  public static final int VECTOR_FIELDS = 4;

  /** How a value stores its elements. */
  public enum Source {
    NUMBER,
    ARRAY,
    BINARY,
    VECTOR
  }

  /**
   * Returns a column's tensor type.
   *
   * @return empty if it is none: not a number, and without metadata
   * @throws IllegalArgumentException if metadata and type contradict each other
   */
  public static Optional<TensorColumn> of(StructType schema, int ordinal) {
    StructField field = schema.fields()[ordinal];
    Optional<long[]> shape = TensorMetadata.shapeOf(field);
    if (shape.isEmpty()) {
      return TensorMetadata.elementType(field.dataType())
          .map(dtype -> new TensorColumn(ordinal, field.name(), Source.NUMBER, dtype, List.of()));
    }
    DataType dtype = TensorMetadata.dtypeOf(field).orElseThrow();
    List<Long> dimensions = Arrays.stream(shape.get()).boxed().toList();
    return Optional.of(
        new TensorColumn(ordinal, field.name(), source(field, dtype), dtype, dimensions));
  }

  private static Source source(StructField field, DataType dtype) {
    if (field.dataType() instanceof ArrayType array
        && TensorMetadata.fits(array.elementType(), dtype)) {
      return Source.ARRAY;
    }
    if (field.dataType() instanceof BinaryType) {
      return Source.BINARY;
    }
    if (isVector(field.dataType()) && dtype == DataType.FLOAT64) {
      return Source.VECTOR;
    }
    throw new IllegalArgumentException(
        "column %s: values of type %s cannot be tensors of %s"
            .formatted(field.name(), field.dataType().simpleString(), dtype));
  }

  /**
   * Detects an ml vector by its structure: the class is in Spark's ml library, which a feed does
   * not need.
   */
  private static boolean isVector(org.apache.spark.sql.types.DataType type) {
    return type instanceof UserDefinedType<?> udt
        && udt.sqlType() instanceof StructType struct
        && Arrays.equals(struct.fieldNames(), new String[] {"type", "size", "indices", "values"})
        && struct.fields()[VECTOR_VALUES].dataType() instanceof ArrayType array
        && TensorMetadata.elementType(array.elementType())
            .filter(DataType.FLOAT64::equals)
            .isPresent();
  }

  /** Sizes of one value, -1 first if it varies; empty for a plain number. */
  public long[] shape() {
    return dimensions.stream().mapToLong(Long::longValue).toArray();
  }

  /** Returns whether all values have the same shape. */
  public boolean fixed() {
    return dimensions.isEmpty() || dimensions.get(0) >= 0;
  }

  /** Elements of a value, or of one index of its first dimension if that varies. */
  public long elements() {
    long elements = 1;
    for (long size : dimensions) {
      elements *= Math.abs(size);
    }
    return elements;
  }

  /** The type as text, for example {@code float32[3, 1024]}. */
  public String type() {
    return dtype + dimensions.toString();
  }

  /** Views the column's elements in a chunk whose rows were verified when they were written. */
  public Tensor in(ChunkView chunk) {
    if (!fixed()) {
      throw new IllegalArgumentException(
          "column %s: its values have different shapes (%s), so that no tensor holds all of them;"
                  .formatted(name, type())
              + " arrow() has them as lists");
    }
    BlockColumnVector column = chunk.column(ordinal);
    requireNoNulls(column, chunk.rows());
    long count = chunk.rows() * elements();
    TensorType type = TensorType.of(dtype, shape()).withRows(chunk.rows());
    return Tensor.of(TypedBuffer.at(values(column), dtype, count), type.shape());
  }

  private void requireNoNulls(BlockColumnVector column, int rows) {
    for (int row = 0; column.hasNull() && row < rows; row++) {
      if (column.isNullAt(row)) {
        throw new IllegalStateException(
            "column %s, row %d of the batch: null is not a value of tensor %s"
                .formatted(name, row, type()));
      }
    }
  }

  /** Address of the elements. */
  long values(BlockColumnVector column) {
    return switch (source) {
      case NUMBER, BINARY -> column.values();
      case ARRAY -> column.getChild(0).values();
      case VECTOR -> column.getChild(VECTOR_VALUES).getChild(0).values();
    };
  }
}
