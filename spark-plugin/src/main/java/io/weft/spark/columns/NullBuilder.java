package io.weft.spark.columns;

import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Builds columns of the null type: counts their values. */
final class NullBuilder extends ColumnBuilder {
  NullBuilder(BuilderContext context) {
    super(context);
  }

  @Override
  void append(ColumnVector vector, Selection selection, byte[] parentNulls) {
    for (int group = 0; group < selection.groups(); group++) {
      added(selection.partition(group), selection.from(group + 1) - selection.from(group));
    }
  }

  @Override
  void appendRun(BlockColumnVector vector, int start, int count, int partition) {
    added(partition, count);
  }

  @Override
  void appendValue(SpecializedGetters source, int ordinal, int partition) {
    added(partition, 1);
  }

  @Override
  void appendNull(int partition) {
    added(partition, 1);
  }

  @Override
  long packedInRows(int partition, int owners) {
    return 0;
  }

  @Override
  void write(int partition, ChunkWriter out) {
    out.node(rows(partition), 0);
  }

  @Override
  void expose(int partition, BlockColumnVector vector) {
    vector.point(rows(partition), 0, 0, 0);
  }
}
