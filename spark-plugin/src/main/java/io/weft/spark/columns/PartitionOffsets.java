package io.weft.spark.columns;

import org.apache.spark.unsafe.Platform;

/** The 32-bit offsets of a column of strings or lists, per partition. */
final class PartitionOffsets {
  private final PartitionBuffers buffers;

  PartitionOffsets(BufferPool pool, int partitions) {
    buffers = new PartitionBuffers(pool, partitions);
  }

  long address(int partition) {
    return buffers.address(partition);
  }

  /** Returns the end offset of the first {@code rows} rows. */
  int end(int partition, int rows) {
    return rows == 0 ? 0 : Platform.getInt(null, buffers.address(partition) + 4L * rows);
  }

  /**
   * Reserves space for the end offsets of more values.
   *
   * @return the address of the next end offset
   */
  long reserve(int partition, int rows, int count) {
    int sum = BatchTooLargeException.add(rows, count);
    long address =
        buffers.reserve(partition, ChunkFormat.offsetBytes(rows), ChunkFormat.offsetBytes(sum));
    if (rows == 0) {
      Platform.putInt(null, address, 0);
    }
    return address + ChunkFormat.offsetBytes(rows);
  }

  /** Appends one end offset. */
  void append(int partition, int rows, int end) {
    Platform.putInt(null, reserve(partition, rows, 1), end);
  }

  /** Appends the end offsets of contiguous values, adjusted to their new start. */
  void appendRun(int partition, int rows, long source, int start, int count) {
    long target = reserve(partition, rows, count);
    int shift = end(partition, rows) - Platform.getInt(null, source + 4L * start);
    long from = source + 4L * (start + 1L);
    for (long i = 0; i < 4L * count; i += 4) {
      Platform.putInt(null, target + i, Platform.getInt(null, from + i) + shift);
    }
  }

  void release(int partition) {
    buffers.release(partition);
  }

  void write(int partition, int rows, ChunkWriter out) {
    if (rows == 0) {
      out.noOffsets();
    } else {
      out.buffer(buffers.address(partition), ChunkFormat.offsetBytes(rows));
    }
  }
}
