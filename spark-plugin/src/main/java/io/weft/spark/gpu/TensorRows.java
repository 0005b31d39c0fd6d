package io.weft.spark.gpu;

import io.weft.collectives.buffer.DataType;
import io.weft.memory.Memory;
import io.weft.spark.columns.BlockColumnVector;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import org.apache.spark.sql.types.BinaryType;

/**
 * The rows of a tensor column in a chunk: verifies their shape and finds them as one run. For one
 * thread.
 */
final class TensorRows {
  private final BlockColumnVector column;
  private final TensorType row;
  private final int rows;
  private final boolean isBinary;

  /**
   * Wraps rows that are not verified yet.
   *
   * @param row the type of each row that is not null
   */
  TensorRows(BlockColumnVector column, TensorType row, int rows) {
    this.column = column;
    this.row = row;
    this.rows = rows;
    this.isBinary = column.dataType() instanceof BinaryType;
  }

  /**
   * Verifies that all rows that are not null have the declared type.
   *
   * @param name of the column
   * @param place of the rows, for the error
   * @throws IllegalArgumentException naming column, row and both shapes
   */
  void verify(String name, RowPlace place) {
    int wanted = isBinary ? Math.toIntExact(row.bytes()) : Math.toIntExact(row.elements());
    for (int i = 0; i < rows; i++) {
      int found = column.offset(i + 1) - column.offset(i);
      if (found != wanted && !column.isNullAt(i)) {
        throw place.mismatch(name, i, text(found), row);
      }
    }
    if (!isBinary && column.getChild(0).hasNull()) {
      verifyElements(name, place);
    }
  }

  private void verifyElements(String name, RowPlace place) {
    BlockColumnVector elements = column.getChild(0);
    for (int i = 0; i < rows; i++) {
      int start = column.offset(i);
      for (int at = start; at < column.offset(i + 1); at++) {
        if (elements.isNullAt(at)) {
          String found = "shape [%d] with a null at %d".formatted(row.elements(), at - start);
          throw place.mismatch(name, i, found, row);
        }
      }
    }
  }

  private String text(int found) {
    int width = row.dtype().bytes();
    if (!isBinary) {
      return "shape [" + found + "]";
    }
    return found % width == 0 ? "shape [" + found / width + "]" : found + " bytes";
  }

  /** Returns whether the values are contiguous, from {@link #values} on: none is null. */
  boolean areDense() {
    return !column.hasNull();
  }

  /** Address of the first row's values. */
  long values() {
    return isBinary
        ? column.values() + column.offset(0)
        : column.getChild(0).values() + (long) row.dtype().bytes() * column.offset(0);
  }

  /** Copies the values, with zeros for null rows, which have no values in a chunk. */
  Tensor spread() {
    Tensor made = Tensor.allocate(TensorType.of(DataType.INT8, row.bytes() * rows));
    long from = values();
    for (int i = 0; i < rows; i++) {
      if (!column.isNullAt(i)) {
        Memory.copy(from, made.address() + i * row.bytes(), row.bytes());
        from += row.bytes();
      }
    }
    return made;
  }
}
