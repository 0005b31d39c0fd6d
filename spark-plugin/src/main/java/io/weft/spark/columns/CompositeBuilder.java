package io.weft.spark.columns;

import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Builds columns whose values consist of one value of each child. */
abstract class CompositeBuilder extends ColumnBuilder {
  private final ColumnBuilder[] children;

  CompositeBuilder(ColumnLayout layout, BuilderContext context) {
    super(context);
    children =
        layout.children().stream()
            .map(child -> ColumnBuilder.of(child, context))
            .toArray(ColumnBuilder[]::new);
  }

  final ColumnBuilder child(int ordinal) {
    return children[ordinal];
  }

  final int children() {
    return children.length;
  }

  @Override
  void append(ColumnVector vector, Selection selection, byte[] parentNulls) {
    byte[] nulls = nulls(vector, selection, parentNulls);
    for (int i = 0; i < children.length; i++) {
      appendChild(children[i], vector.getChild(i), selection, nulls);
    }
    for (int group = 0; group < selection.groups(); group++) {
      int partition = selection.partition(group);
      int from = selection.from(group);
      int to = selection.from(group + 1);
      validity().append(partition, rows(partition), nulls, from, to);
      added(partition, to - from);
    }
  }

  private static void appendChild(
      ColumnBuilder child, ColumnVector vector, Selection selection, byte[] nulls) {
    if (vector != null) {
      child.append(vector, selection, nulls);
      return;
    }
    // A constant null struct may have no children.
    for (int group = 0; group < selection.groups(); group++) {
      for (int i = selection.from(group); i < selection.from(group + 1); i++) {
        child.appendNull(selection.partition(group));
      }
    }
  }

  /** Completes a value after its children were appended. */
  final void endValue(int partition) {
    validity().appendValid(partition, rows(partition), 1);
    added(partition, 1);
  }

  @Override
  final void appendRun(BlockColumnVector vector, int start, int count, int partition) {
    BatchTooLargeException.add(rows(partition), count);
    for (int i = 0; i < children.length; i++) {
      children[i].appendRun(vector.getChild(i), start, count, partition);
    }
    appendValidity(vector, start, count, partition);
    added(partition, count);
  }

  @Override
  final void appendNull(int partition) {
    for (ColumnBuilder child : children) {
      child.appendNull(partition);
    }
    validity().appendNull(partition, rows(partition));
    added(partition, 1);
  }

  @Override
  final void truncate(int partition, int keptRows) {
    super.truncate(partition, keptRows);
    for (ColumnBuilder child : children) {
      child.truncate(partition, rows(partition));
    }
  }

  @Override
  final void clear(int partition, boolean release) {
    super.clear(partition, release);
    for (ColumnBuilder child : children) {
      child.clear(partition, release);
    }
  }

  @Override
  final long measure(int partition) {
    long bytes = super.measure(partition);
    for (ColumnBuilder child : children) {
      bytes += child.measure(partition);
    }
    return bytes;
  }

  @Override
  long packedInRows(int partition, int owners) {
    int present = rows(partition) - validity().nulls(partition);
    long bytes = packedWords(children.length) * present;
    for (ColumnBuilder child : children) {
      bytes += child.packedInRows(partition, present);
    }
    return bytes;
  }

  @Override
  final void write(int partition, ChunkWriter out) {
    out.node(validity().nulls(partition), 0);
    validity().write(partition, rows(partition), out);
    for (ColumnBuilder child : children) {
      child.write(partition, out);
    }
  }

  @Override
  final void expose(int partition, BlockColumnVector vector) {
    vector.point(validity().nulls(partition), validity().address(partition), 0, 0);
    for (int i = 0; i < children.length; i++) {
      children[i].expose(partition, vector.getChild(i));
    }
  }
}
