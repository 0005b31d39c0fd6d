package io.weft.spark.columns;

import io.weft.spark.columns.BuilderContext.PartitionBuffers;
import io.weft.spark.columns.BytesSource.FixedSource;
import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import io.weft.spark.columns.ColumnLayout.StorageForm;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;

/** Builds columns of booleans, one bit each. */
final class BooleanBuilder extends ColumnBuilder {
  private final PartitionBuffers values;
  private final FixedSource source = new FixedSource();
  private byte[] picked = new byte[0];

  BooleanBuilder(BuilderContext context) {
    super(context);
    values = new PartitionBuffers(context.pool(), context.partitions());
  }

  @Override
  void append(ColumnVector vector, Selection selection, byte[] parentNulls) {
    byte[] nulls = nulls(vector, selection, parentNulls);
    pick(vector, selection.rows(), selection.count(), nulls);
    for (int group = 0; group < selection.groups(); group++) {
      int partition = selection.partition(group);
      int from = selection.from(group);
      int to = selection.from(group + 1);
      Bits.append(reserve(partition, to - from), rows(partition), picked, from, to, 0);
      validity().append(partition, rows(partition), nulls, from, to);
      added(partition, to - from);
    }
  }

  private void pick(ColumnVector vector, int[] rows, int count, byte[] nulls) {
    if (picked.length < count) {
      picked = new byte[rows.length];
    }
    if (vector instanceof WritableColumnVector && source.locate(vector, StorageForm.BYTE)) {
      pickBytes(rows, count, nulls);
      return;
    }
    for (int i = 0; i < count; i++) {
      boolean value = (nulls == null || nulls[i] == 0) && vector.getBoolean(rows[i]);
      picked[i] = (byte) (value ? 1 : 0);
    }
  }

  /** Spark's own vectors have a byte of 0 or 1 for each value; that of a null is undefined. */
  private void pickBytes(int[] rows, int count, byte[] nulls) {
    Object base = source.base();
    long offset = source.offset();
    for (int i = 0; i < count; i++) {
      picked[i] = Platform.getByte(base, offset + rows[i]);
    }
    for (int i = 0; nulls != null && i < count; i++) {
      picked[i] &= (byte) (nulls[i] - 1); // All bits: the bytes must be 0 or 1.
    }
  }

  @Override
  void appendRun(BlockColumnVector vector, int start, int count, int partition) {
    Bits.append(reserve(partition, count), rows(partition), vector.values(), start, count);
    appendValidity(vector, start, count, partition);
    added(partition, count);
  }

  @Override
  void appendValue(SpecializedGetters source, int ordinal, int partition) {
    Bits.append(reserve(partition, 1), rows(partition), source.getBoolean(ordinal));
    validity().appendValid(partition, rows(partition), 1);
    added(partition, 1);
  }

  @Override
  void appendNull(int partition) {
    Bits.append(reserve(partition, 1), rows(partition), false);
    validity().appendNull(partition, rows(partition));
    added(partition, 1);
  }

  private long reserve(int partition, int count) {
    int rows = rows(partition);
    int sum = BatchTooLargeException.add(rows, count);
    return values.reserve(partition, ChunkFormat.bitBytes(rows), ChunkFormat.bitBytes(sum));
  }

  @Override
  void clear(int partition, boolean release) {
    super.clear(partition, release);
    if (release) {
      values.release(partition);
    }
  }

  @Override
  long measure(int partition) {
    return super.measure(partition) + ChunkFormat.align(ChunkFormat.bitBytes(rows(partition)));
  }

  @Override
  long packedInRows(int partition, int owners) {
    return 0;
  }

  @Override
  int packedSlotBytes() {
    return 1;
  }

  @Override
  void write(int partition, ChunkWriter out) {
    out.node(validity().nulls(partition), 0);
    validity().write(partition, rows(partition), out);
    out.bits(values.address(partition), rows(partition));
  }

  @Override
  void expose(int partition, BlockColumnVector vector) {
    vector.point(
        validity().nulls(partition), validity().address(partition), 0, values.address(partition));
  }
}
