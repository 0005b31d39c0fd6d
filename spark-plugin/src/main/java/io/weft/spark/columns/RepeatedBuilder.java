package io.weft.spark.columns;

import io.weft.spark.columns.BuilderContext.PartitionOffsets;
import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import io.weft.spark.compat.OnHeapArrays;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;

/** Builds columns whose values have a variable number of elements: lists and maps. */
abstract class RepeatedBuilder extends ColumnBuilder {
  private final ColumnBuilder[] children;
  private final PartitionOffsets offsets;
  private final RunSource source;

  RepeatedBuilder(ColumnLayout layout, BuilderContext context) {
    super(context);
    children =
        layout.children().stream()
            .map(child -> ColumnBuilder.of(child, context))
            .toArray(ColumnBuilder[]::new);
    offsets = new PartitionOffsets(context.pool(), context.partitions());
    source = new RunSource(children.length);
  }

  /** Appends the elements of one value of a vector without accessible element vectors. */
  abstract void appendElements(ColumnVector vector, int row, int partition);

  final ColumnBuilder child(int ordinal) {
    return children[ordinal];
  }

  @Override
  final void append(ColumnVector vector, Selection selection, byte[] parentNulls) {
    byte[] nulls = nulls(vector, selection, parentNulls);
    if (!source.locate(vector, selection, nulls)) {
      appendOneByOne(vector, selection, nulls);
      return;
    }
    int[] rows = selection.rows();
    for (int group = 0; group < selection.groups(); group++) {
      int partition = selection.partition(group);
      int from = selection.from(group);
      int to = selection.from(group + 1);
      appendOffsets(partition, rows, from, to, nulls);
      validity().append(partition, rows(partition), nulls, from, to);
      added(partition, to - from);
    }
    for (int i = 0; i < children.length; i++) {
      children[i].append(source.child(i), source.elements(), null);
    }
  }

  private void appendOffsets(int partition, int[] rows, int from, int to, byte[] nulls) {
    int end = offsets.end(partition, rows(partition));
    long target = offsets.reserve(partition, rows(partition), to - from);
    for (int i = from; i < to; i++, target += 4) {
      if (nulls == null || nulls[i] == 0) {
        end = BatchTooLargeException.add(end, source.length(rows[i]));
      }
      Platform.putInt(null, target, end);
    }
  }

  private void appendOneByOne(ColumnVector vector, Selection selection, byte[] nulls) {
    int[] rows = selection.rows();
    for (int group = 0; group < selection.groups(); group++) {
      int partition = selection.partition(group);
      for (int i = selection.from(group); i < selection.from(group + 1); i++) {
        if (nulls != null && nulls[i] != 0) {
          appendNull(partition);
        } else {
          appendElements(vector, rows[i], partition);
          endValue(partition);
        }
      }
    }
  }

  /** Completes a value after its elements were appended. */
  final void endValue(int partition) {
    offsets.append(partition, rows(partition), children[0].rows(partition));
    validity().appendValid(partition, rows(partition), 1);
    added(partition, 1);
  }

  @Override
  final void appendRun(BlockColumnVector vector, int start, int count, int partition) {
    int first = vector.offset(start);
    int length = vector.offset(start + count) - first;
    BatchTooLargeException.add(children[0].rows(partition), length);
    for (int i = 0; i < children.length; i++) {
      children[i].appendRun(vector.getChild(i), first, length, partition);
    }
    offsets.appendRun(partition, rows(partition), vector.offsets(), start, count);
    appendValidity(vector, start, count, partition);
    added(partition, count);
  }

  @Override
  final void appendNull(int partition) {
    offsets.append(partition, rows(partition), offsets.end(partition, rows(partition)));
    validity().appendNull(partition, rows(partition));
    added(partition, 1);
  }

  @Override
  final void truncate(int partition, int keptRows) {
    super.truncate(partition, keptRows);
    for (ColumnBuilder child : children) {
      child.truncate(partition, offsets.end(partition, rows(partition)));
    }
  }

  @Override
  final void clear(int partition, boolean release) {
    super.clear(partition, release);
    for (ColumnBuilder child : children) {
      child.clear(partition, release);
    }
    if (release) {
      offsets.release(partition);
    }
  }

  @Override
  final long measure(int partition) {
    long bytes =
        super.measure(partition) + ChunkFormat.align(ChunkFormat.offsetBytes(rows(partition)));
    for (ColumnBuilder child : children) {
      bytes += child.measure(partition);
    }
    return bytes;
  }

  @Override
  final long packedInRows(int partition, int owners) {
    long bytes = 0;
    for (int row = 0; row < rows(partition); row++) {
      if (!isNull(partition, row)) {
        int elements = offsets.end(partition, row + 1) - offsets.end(partition, row);
        bytes += packedHead();
        for (ColumnBuilder child : children) {
          bytes += UnsafeArrayData.calculateHeaderPortionInBytes((long) elements);
          bytes += packedBytes((long) child.packedSlotBytes() * elements);
        }
      }
    }
    for (ColumnBuilder child : children) {
      bytes += child.packedInArrays(partition);
    }
    return bytes;
  }

  /** Bytes of a packed value before its arrays. */
  abstract long packedHead();

  @Override
  final void write(int partition, ChunkWriter out) {
    int rows = rows(partition);
    out.node(validity().nulls(partition), offsets.end(partition, rows));
    validity().write(partition, rows, out);
    offsets.write(partition, rows, out);
    for (ColumnBuilder child : children) {
      child.write(partition, out);
    }
  }

  @Override
  final void expose(int partition, BlockColumnVector vector) {
    vector.point(
        validity().nulls(partition), validity().address(partition), offsets.address(partition), 0);
    for (int i = 0; i < children.length; i++) {
      children[i].expose(partition, vector.getChild(i));
    }
  }

  /**
   * Locates the element vectors of a vector of lists or maps, and the run of elements of each
   * selected value. Reused.
   */
  static final class RunSource {
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
      if (!find(vector)) {
        return false;
      }
      int[] rows = selection.rows();
      int[] starts = OnHeapArrays.starts(vector);
      int[] lengths = OnHeapArrays.lengths(vector);
      elements.beginRuns();
      for (int group = 0; group < selection.groups(); group++) {
        elements.beginGroup(selection.partition(group));
        int from = selection.from(group);
        int to = selection.from(group + 1);
        if (starts != null && lengths != null) {
          elements.addRuns(starts, lengths, rows, from, to, nulls);
        } else {
          addRuns(rows, from, to, nulls);
        }
      }
      return true;
    }

    private void addRuns(int[] rows, int from, int to, byte[] nulls) {
      for (int i = from; i < to; i++) {
        if (nulls == null || nulls[i] == 0) {
          elements.addRun(start(rows[i]), length(rows[i]));
        }
      }
    }

    /** Number of elements of the value at a row; the vector must have been located. */
    int length(int row) {
      return writable != null
          ? writable.getArrayLength(row)
          : Platform.getInt(null, offsets + 4L * row + 4)
              - Platform.getInt(null, offsets + 4L * row);
    }

    /** First element of the value at a row; the vector must have been located. */
    int start(int row) {
      return writable != null
          ? writable.getArrayOffset(row)
          : Platform.getInt(null, offsets + 4L * row);
    }

    /**
     * Locates the element vectors.
     *
     * @return false if the vector has none that are accessible
     */
    boolean find(ColumnVector vector) {
      writable = null;
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
}
