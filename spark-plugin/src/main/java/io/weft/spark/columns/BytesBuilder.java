package io.weft.spark.columns;

import io.weft.spark.columns.BuilderContext.PartitionBuffers;
import io.weft.spark.columns.BuilderContext.PartitionOffsets;
import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;

/** Builds columns of strings and binary values. */
final class BytesBuilder extends ColumnBuilder {
  private final PartitionOffsets offsets;
  private final PartitionBuffers bytes;
  private final BytesSource source;

  BytesBuilder(ColumnLayout layout, BuilderContext context) {
    super(context);
    offsets = new PartitionOffsets(context.pool(), context.partitions());
    bytes = new PartitionBuffers(context.pool(), context.partitions());
    source = new BytesSource(layout);
  }

  @Override
  void append(ColumnVector vector, Selection selection, byte[] parentNulls) {
    byte[] nulls = nulls(vector, selection, parentNulls);
    source.locate(vector, selection.rows(), selection.count(), nulls);
    for (int group = 0; group < selection.groups(); group++) {
      int partition = selection.partition(group);
      int from = selection.from(group);
      int to = selection.from(group + 1);
      appendOffsets(partition, from, to);
      validity().append(partition, rows(partition), nulls, from, to);
      added(partition, to - from);
    }
    source.forget();
  }

  private void appendOffsets(int partition, int from, int to) {
    int rows = rows(partition);
    int start = offsets.end(partition, rows);
    long target = offsets.reserve(partition, rows, to - from);
    long end = start;
    for (int i = from; i < to; i++, target += 4) {
      end += source.length(i);
      Platform.putInt(null, target, (int) end);
    }
    source.copy(from, to, reserve(partition, start, end - start));
  }

  @Override
  void appendRun(BlockColumnVector vector, int start, int count, int partition) {
    int rows = rows(partition);
    int end = offsets.end(partition, rows);
    int first = vector.offset(start);
    int length = vector.offset(start + count) - first;
    long target = reserve(partition, end, length);
    Platform.copyMemory(null, vector.values() + first, null, target, length);
    offsets.appendRun(partition, rows, vector.offsets(), start, count);
    appendValidity(vector, start, count, partition);
    added(partition, count);
  }

  @Override
  void appendValue(SpecializedGetters row, int ordinal, int partition) {
    source.locate(row, ordinal);
    appendLocated(partition);
  }

  /** Appends a value of an array. */
  void appendValue(byte[] value, int partition) {
    source.locate(value);
    appendLocated(partition);
  }

  private void appendLocated(int partition) {
    appendOffsets(partition, 0, 1);
    validity().appendValid(partition, rows(partition), 1);
    added(partition, 1);
    source.forget();
  }

  @Override
  void appendNull(int partition) {
    int rows = rows(partition);
    offsets.append(partition, rows, offsets.end(partition, rows));
    validity().appendNull(partition, rows);
    added(partition, 1);
  }

  private long reserve(int partition, int used, long more) {
    return bytes.reserve(partition, used, BatchTooLargeException.add(used, more)) + used;
  }

  private int extent(int partition) {
    return offsets.end(partition, rows(partition));
  }

  @Override
  void clear(int partition, boolean release) {
    super.clear(partition, release);
    if (release) {
      offsets.release(partition);
      bytes.release(partition);
    }
  }

  @Override
  long measure(int partition) {
    return super.measure(partition)
        + ChunkFormat.align(ChunkFormat.offsetBytes(rows(partition)))
        + ChunkFormat.align(extent(partition));
  }

  @Override
  long packedInRows(int partition, int owners) {
    long bytes = 0;
    int rows = rows(partition);
    long at = offsets.address(partition);
    int start = 0;
    for (int row = 0; row < rows; row++) {
      at += 4;
      int end = Platform.getInt(null, at);
      bytes += end - start + 7 & -8;
      start = end;
    }
    return bytes;
  }

  /** Bytes of a value. */
  int length(int partition, int row) {
    return offsets.end(partition, row + 1) - offsets.end(partition, row);
  }

  @Override
  void write(int partition, ChunkWriter out) {
    int rows = rows(partition);
    out.node(validity().nulls(partition), extent(partition));
    validity().write(partition, rows, out);
    offsets.write(partition, rows, out);
    out.buffer(bytes.address(partition), extent(partition));
  }

  @Override
  void expose(int partition, BlockColumnVector vector) {
    vector.point(
        validity().nulls(partition),
        validity().address(partition),
        offsets.address(partition),
        bytes.address(partition));
  }
}
