package io.weft.spark.columns;

import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;

/**
 * Locates the element vectors of a vector of lists or maps, and the run of elements of each
 * selected value. Reused.
 */
final class RunSource {
  private final ColumnVector[] children;
  private final Selection elements = new Selection();
  private WritableColumnVector writable;
  private long offsets;

  /**
   * @param children 1 for lists, 2 for maps
   */
  RunSource(int children) {
    this.children = new ColumnVector[children];
  }

  /** Returns the vector of elements, or of keys (0) and values (1). */
  ColumnVector child(int ordinal) {
    return children[ordinal];
  }

  /** Returns the elements of the selected values, in the same groups. */
  Selection elements() {
    return elements;
  }

  /**
   * Locates the elements of the selected values.
   *
   * @param nulls 1 for a null, by position; null if there are no nulls
   * @return false if the vector has no accessible element vectors
   */
  boolean locate(ColumnVector vector, Selection selection, byte[] nulls) {
    writable = null;
    if (!find(vector)) {
      return false;
    }
    int[] rows = selection.rows();
    elements.beginRuns();
    for (int group = 0; group < selection.groups(); group++) {
      elements.beginGroup(selection.partition(group));
      for (int i = selection.from(group); i < selection.from(group + 1); i++) {
        if (nulls == null || nulls[i] == 0) {
          elements.addRun(start(rows[i]), length(rows[i]));
        }
      }
    }
    return true;
  }

  /** Number of elements of the value at a row; the vector must have been located. */
  int length(int row) {
    return writable != null
        ? writable.getArrayLength(row)
        : Platform.getInt(null, offsets + 4L * row + 4) - Platform.getInt(null, offsets + 4L * row);
  }

  private int start(int row) {
    return writable != null
        ? writable.getArrayOffset(row)
        : Platform.getInt(null, offsets + 4L * row);
  }

  private boolean find(ColumnVector vector) {
    if (vector instanceof WritableColumnVector found) {
      writable = found;
      return take(vector);
    }
    if (vector instanceof BlockColumnVector block) {
      offsets = block.offsets();
      return take(vector);
    }
    return vector.getClass() == ArrowColumnVector.class
        && arrow(((ArrowColumnVector) vector).getValueVector());
  }

  private boolean take(ColumnVector vector) {
    for (int i = 0; i < children.length; i++) {
      children[i] = vector.getChild(i);
    }
    return true;
  }

  private boolean arrow(ValueVector vector) {
    if (!(vector instanceof ListVector list)) {
      return false;
    }
    offsets = list.getOffsetBufferAddress();
    if (children.length == 1) {
      children[0] = new ArrowColumnVector(list.getDataVector());
    } else {
      StructVector entries = (StructVector) list.getDataVector();
      children[0] = new ArrowColumnVector(entries.getChild(MapVector.KEY_NAME));
      children[1] = new ArrowColumnVector(entries.getChild(MapVector.VALUE_NAME));
    }
    return true;
  }
}
