package io.weft.spark.columns;

import org.apache.spark.unsafe.Platform;

/**
 * Iterates over the batches of a chunk, their nodes and buffers, and checks that all are within the
 * chunk. It does not check the values. Reused.
 */
final class ChunkCursor {
  private ChunkSource source;
  private long next;
  private long end;
  private long batch;
  private long batchEnd;
  private long node;
  private long nodesEnd;
  private long buffer;

  /** Starts with the current chunk of a source. */
  void open(ChunkSource chunk) {
    source = chunk;
    next = chunk.address();
    end = next + chunk.length();
    check((next & (ChunkFormat.ALIGNMENT - 1)) == 0, "it does not start at a multiple of 64");
  }

  /** Whether there is another batch. */
  boolean hasNext() {
    return next < end;
  }

  /**
   * Advances to the next batch.
   *
   * @return its rows
   * @throws IllegalStateException if the chunk does not have this format and number of nodes
   */
  int next(int nodes) {
    batch = next;
    long header = ChunkFormat.headerBytes(nodes);
    check(end - batch >= header, "its header is cut off");
    check(Platform.getInt(null, batch) == ChunkFormat.MAGIC, "it is of another format or version");
    int rows = Platform.getInt(null, batch + ChunkFormat.ROWS_OFFSET);
    long bytes = Platform.getLong(null, batch + ChunkFormat.BYTES_OFFSET);
    check(rows >= 0, "it has a negative number of rows");
    check(bytes >= header && bytes <= end - batch, "a batch ends outside it");
    check(bytes % ChunkFormat.ALIGNMENT == 0, "a batch does not end at a multiple of 64");
    batchEnd = batch + bytes;
    next = batchEnd;
    node = batch + ChunkFormat.NODES_OFFSET - ChunkFormat.NODE_BYTES;
    nodesEnd = batch + ChunkFormat.NODES_OFFSET + (long) ChunkFormat.NODE_BYTES * nodes;
    buffer = batch + header;
    return rows;
  }

  /** Bytes of the batch, including its header. */
  long batchBytes() {
    return batchEnd - batch;
  }

  /** Checks that the current batch has no further nodes or bytes. */
  void end() {
    check(node + ChunkFormat.NODE_BYTES == nodesEnd, "a batch has more nodes than its schema");
    check(buffer == batchEnd, "a batch has bytes that belong to no column");
  }

  void nextNode() {
    node += ChunkFormat.NODE_BYTES;
    check(node < nodesEnd, "a batch has fewer nodes than its schema");
  }

  int nulls() {
    return Platform.getInt(null, node);
  }

  int extent() {
    return Platform.getInt(null, node + ChunkFormat.EXTENT_OFFSET);
  }

  /** Returns the address of the next buffer, of that many bytes before padding. */
  long buffer(long bytes) {
    long address = buffer;
    check(bytes >= 0 && bytes <= batchEnd - address, "a column ends outside its batch");
    buffer = address + ChunkFormat.align(bytes);
    return address;
  }

  /**
   * Returns the address of the next buffer, with the offsets of that many values up to an extent.
   */
  long offsets(int values, int extent) {
    long address = buffer(ChunkFormat.offsetBytes(values));
    check(
        Platform.getInt(null, address) == 0
            && Platform.getInt(null, address + 4L * values) == extent,
        "the offsets of a column do not span its values");
    return address;
  }

  private void check(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalStateException(
          "A chunk of " + source.describe() + " cannot be read: " + otherwise);
    }
  }
}
