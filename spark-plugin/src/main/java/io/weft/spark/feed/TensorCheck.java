package io.weft.spark.feed;

import io.weft.shuffle.device.ColumnKind;
import io.weft.spark.feed.arrow.TensorColumn;
import io.weft.spark.gpu.DeviceBatch;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;

/**
 * Verifies before the exchange that the values of tensor columns match their metadata, so that a
 * receiver can read them as one array. For one task thread.
 */
final class TensorCheck {
  /** Bytes before an array's null bits: its element count. */
  private static final int COUNT_BYTES = 8;

  private final StructType schema;
  private final List<TensorColumn> columns;
  private final boolean[] nullable;
  private final int partition;
  private long row;

  /**
   * Checks rows of a schema.
   *
   * @param partition of the input, for errors
   */
  TensorCheck(StructType schema, int partition) {
    this.schema = schema;
    this.columns = columns(schema).stream().filter(TensorCheck::hasShape).toList();
    this.partition = partition;
    this.nullable = new boolean[schema.size()];
    for (TensorColumn column : columns) {
      nullable[column.ordinal()] =
          !(schema.fields()[column.ordinal()].dataType() instanceof ArrayType array)
              || array.containsNull();
    }
  }

  /** The columns of a schema that can be tensors. */
  static List<TensorColumn> columns(StructType schema) {
    return IntStream.range(0, schema.size())
        .mapToObj(ordinal -> TensorColumn.of(schema, ordinal))
        .flatMap(Optional::stream)
        .toList();
  }

  private static boolean hasShape(TensorColumn column) {
    return column.source() != TensorColumn.Source.NUMBER;
  }

  /**
   * Checks the next row.
   *
   * @throws IllegalArgumentException naming column, row and both shapes
   */
  void next(InternalRow values) {
    for (TensorColumn column : columns) {
      check(column, values);
    }
    row++;
  }

  /**
   * Whether the rows of a batch need no check: no column has a shape, or all that do are tensors of
   * that shape in a table on a GPU, without nulls.
   */
  boolean areValid(ColumnarBatch batch) {
    if (columns.isEmpty()) {
      return true;
    }
    Optional<DeviceBatch> there = DeviceBatch.of(batch, schema);
    return there.isPresent()
        && columns.stream()
            .allMatch(
                column ->
                    there.get().table().layout().columns().get(column.ordinal()).kind()
                            == ColumnKind.TENSOR
                        && !batch.column(column.ordinal()).hasNull());
  }

  /** Counts rows that need no check. */
  void skip(int rows) {
    row += rows;
  }

  private void check(TensorColumn column, InternalRow values) {
    int ordinal = column.ordinal();
    if (values.isNullAt(ordinal)) {
      throw mismatch(column, "null");
    }
    switch (column.source()) {
      case BINARY -> checkBytes(column, bytes(values, ordinal));
      case VECTOR -> checkVector(column, values.getStruct(ordinal, TensorColumn.VECTOR_FIELDS));
      default -> checkArray(column, values.getArray(ordinal), nullable[ordinal]);
    }
  }

  private void checkVector(TensorColumn column, InternalRow vector) {
    if (vector.getByte(TensorColumn.VECTOR_KIND) != 1) {
      throw mismatch(column, "a sparse vector");
    }
    checkArray(column, vector.getArray(TensorColumn.VECTOR_VALUES), false);
  }

  /** Avoids a copy if the row stores the length of its values. */
  private static int bytes(InternalRow values, int ordinal) {
    return values instanceof UnsafeRow row
        ? (int) row.getLong(ordinal)
        : values.getBinary(ordinal).length;
  }

  private void checkBytes(TensorColumn column, int bytes) {
    int width = column.dtype().bytes();
    if (bytes % width != 0) {
      throw mismatch(column, bytes + " bytes");
    }
    checkCount(column, bytes / width);
  }

  private void checkArray(TensorColumn column, ArrayData array, boolean mayHaveNulls) {
    checkCount(column, array.numElements());
    int found = mayHaveNulls ? firstNull(array) : -1;
    if (found >= 0) {
      throw mismatch(column, "shape [" + array.numElements() + "] with a null at " + found);
    }
  }

  /**
   * Finds the first null. Spark's own arrays have one null bit per element, so 64 elements are
   * checked at once.
   */
  private static int firstNull(ArrayData array) {
    int count = array.numElements();
    boolean inWords = array instanceof UnsafeArrayData;
    for (int i = 0; i < count; i++) {
      if (inWords && i % Long.SIZE == 0 && noNulls((UnsafeArrayData) array, i / Long.SIZE)) {
        i += Long.SIZE - 1;
      } else if (array.isNullAt(i)) {
        return i;
      }
    }
    return -1;
  }

  private static boolean noNulls(UnsafeArrayData array, int word) {
    long bits = array.getBaseOffset() + COUNT_BYTES + 8L * word;
    return Platform.getLong(array.getBaseObject(), bits) == 0;
  }

  private void checkCount(TensorColumn column, int count) {
    boolean matches = column.fixed() ? count == column.elements() : count % column.elements() == 0;
    if (!matches) {
      throw mismatch(column, "shape " + Arrays.toString(new int[] {count}));
    }
  }

  private IllegalArgumentException mismatch(TensorColumn column, String found) {
    return new IllegalArgumentException(
        "column %s, row %d of input partition %d: %s is not %s"
            .formatted(column.name(), row, partition, found, column.type()));
  }
}
