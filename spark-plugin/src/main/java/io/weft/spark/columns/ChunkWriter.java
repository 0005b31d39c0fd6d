package io.weft.spark.columns;

import org.apache.spark.unsafe.Platform;

/**
 * Writes batches in {@link ChunkFormat}: node by node, each followed by its buffers. The caller
 * measures the batch and allocates the memory. {@link #end} checks the measure; there are no other
 * checks.
 */
final class ChunkWriter {
  private long start;
  private long node;
  private long buffer;

  /** Starts a batch at an address that is a multiple of 64. */
  void begin(long address, int rows, int nodes, long bytes) {
    start = address;
    node = address + ChunkFormat.NODES_OFFSET;
    buffer = address + ChunkFormat.headerBytes(nodes);
    Platform.putInt(null, address, ChunkFormat.MAGIC);
    Platform.putInt(null, address + ChunkFormat.ROWS_OFFSET, rows);
    Platform.putLong(null, address + ChunkFormat.BYTES_OFFSET, bytes);
    zero(node + (long) ChunkFormat.NODE_BYTES * nodes, buffer);
  }

  /** Writes the header of the next node. */
  void node(int nulls, int extent) {
    Platform.putInt(null, node, nulls);
    Platform.putInt(null, node + ChunkFormat.EXTENT_OFFSET, extent);
    node += ChunkFormat.NODE_BYTES;
  }

  /** Copies a buffer. */
  void buffer(long source, long bytes) {
    Platform.copyMemory(null, source, null, buffer, bytes);
    pad(buffer + bytes);
  }

  /** Copies a buffer of bits and clears the bits after the last one. */
  void bits(long source, int bits) {
    long bytes = ChunkFormat.bitBytes(bits);
    Platform.copyMemory(null, source, null, buffer, bytes);
    if ((bits & 7) != 0) {
      long last = buffer + bytes - 1;
      byte used = (byte) (Platform.getByte(null, last) & ((1 << (bits & 7)) - 1));
      Platform.putByte(null, last, used);
    }
    pad(buffer + bytes);
  }

  /** Writes the offsets of no values: a single zero. */
  void noOffsets() {
    Platform.putInt(null, buffer, 0);
    pad(buffer + 4);
  }

  /** Ends the batch. */
  void end() {
    long written = buffer - start;
    long measured = Platform.getLong(null, start + ChunkFormat.BYTES_OFFSET);
    if (written != measured) {
      throw new IllegalStateException(
          "A batch was measured as " + measured + " bytes and written as " + written);
    }
  }

  private void pad(long end) {
    buffer = start + ChunkFormat.align(end - start);
    zero(end, buffer);
  }

  private static void zero(long from, long to) {
    long at = from;
    for (; (at & 7) != 0 && at < to; at++) {
      Platform.putByte(null, at, (byte) 0);
    }
    for (; at < to; at += 8) {
      Platform.putLong(null, at, 0L);
    }
  }
}
