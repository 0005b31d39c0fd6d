package io.weft.spark.shuffle;

import io.weft.catalog.MapOutputWriter;
import io.weft.memory.Extent;
import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/**
 * Copies packed rows to the open chunk of their partition: the only copy a row sees on the way to
 * its reader. A row is its size as an int64 followed by its bytes.
 *
 * <p>For one task thread. Chunks belong to the {@link MapOutputWriter}, which frees them when it is
 * closed.
 */
final class RowScatter {
  /** Each partition has its next byte's address and its chunk's end, side by side. */
  private static final int LIMIT = 1;

  private final MapOutputWriter output;
  private final TaskContext context;
  private final long[] lastBytes;
  private final long maxChunk;
  private final int partitions;

  private final long[] ends;
  private final int[] rows;
  private final long[] nextBytes;
  private final Extent[] chunks;
  private long nanos;

  /**
   * Scatters one map task's rows.
   *
   * @param lastBytes what the previous map output of the shuffle held by partition, or null
   * @param maxChunk bytes no chunk grows beyond unless one row needs more
   */
  RowScatter(
      MapOutputWriter output,
      TaskContext context,
      int partitions,
      long[] lastBytes,
      long maxChunk) {
    this.output = output;
    this.context = context;
    this.partitions = partitions;
    this.lastBytes = lastBytes;
    this.maxChunk = maxChunk;
    this.ends = new long[2 * partitions];
    this.rows = new int[partitions];
    this.nextBytes = new long[partitions];
    this.chunks = new Extent[partitions];
  }

  /**
   * Appends a row to a partition.
   *
   * @throws IOException if the arena is full
   */
  void append(int partition, UnsafeRow row) throws IOException {
    int size = row.getSizeInBytes();
    int slot = 2 * partition;
    long at = ends[slot];
    long end = at + Long.BYTES + size;
    if (end > ends[slot + LIMIT]) {
      at = open(partition, (long) Long.BYTES + size);
      end = at + Long.BYTES + size;
    }
    Platform.putLong(null, at, size);
    Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), null, at + Long.BYTES, size);
    ends[slot] = end;
    rows[partition]++;
  }

  /** Commits every partition's open chunk. */
  void finish() {
    long start = System.nanoTime();
    for (int partition = 0; partition < partitions; partition++) {
      commit(partition);
    }
    nanos += System.nanoTime() - start;
  }

  /** Nanoseconds spent on getting and committing chunks: all but the copy itself. */
  long nanos() {
    return nanos;
  }

  /** Replaces a partition's chunk by one with room for so many bytes; returns its address. */
  private long open(int partition, long bytes) throws IOException {
    long start = System.nanoTime();
    context.killTaskIfInterrupted();
    commit(partition);
    long size = Math.max(bytes, nextBytes(partition));
    Extent chunk = output.allocate(size);
    chunks[partition] = chunk;
    ends[2 * partition] = chunk.address();
    ends[2 * partition + LIMIT] = chunk.address() + chunk.length();
    nextBytes[partition] = Math.min(2 * size, maxChunk);
    nanos += System.nanoTime() - start;
    return chunk.address();
  }

  private long nextBytes(int partition) {
    return nextBytes[partition] == 0
        ? ChunkSizes.first(lastBytes, partition, partitions, maxChunk)
        : nextBytes[partition];
  }

  private void commit(int partition) {
    Extent chunk = chunks[partition];
    if (chunk != null) {
      output.commit(partition, chunk, ends[2 * partition] - chunk.address(), rows[partition]);
      chunks[partition] = null;
      rows[partition] = 0;
    }
  }
}
