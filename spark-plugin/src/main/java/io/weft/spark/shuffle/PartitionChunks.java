package io.weft.spark.shuffle;

import io.weft.catalog.MapOutputWriter;
import io.weft.memory.Extent;
import java.io.IOException;
import org.apache.spark.TaskContext;

/**
 * The open chunk of every partition, to which a writer copies records. A record lies in one chunk.
 *
 * <p>For one task thread. Chunks belong to the {@link MapOutputWriter}, which frees them when it is
 * closed.
 */
final class PartitionChunks {
  /** Each partition has its next byte's address and its chunk's end, side by side. */
  private static final int LIMIT = 1;

  private final MapOutputWriter output;
  private final TaskContext context;
  private final long[] lastBytes;
  private final long maxChunk;
  private final int partitions;

  private final long[] ends;
  private final int[] records;
  private final long[] nextBytes;
  private final Extent[] chunks;
  private long nanos;

  /**
   * Chunks of one map task.
   *
   * @param lastBytes what the previous map output of the shuffle held by partition, or null
   * @param maxChunk bytes no chunk grows beyond unless one record needs more
   */
  PartitionChunks(
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
    this.records = new int[partitions];
    this.nextBytes = new long[partitions];
    this.chunks = new Extent[partitions];
  }

  /**
   * Finds room for a partition's next record, which {@link #wrote} then makes a part of the chunk.
   *
   * @param bytes most that the record may need
   * @return where it is to be written
   * @throws IOException if the arena is full
   */
  long room(int partition, long bytes) throws IOException {
    int slot = 2 * partition;
    long at = ends[slot];
    return at + bytes <= ends[slot + LIMIT] ? at : open(partition, bytes);
  }

  /**
   * Takes the record that was written.
   *
   * @param end behind its last byte
   */
  void wrote(int partition, long end) {
    ends[2 * partition] = end;
    records[partition]++;
  }

  /** Commits every partition's open chunk. */
  void finish() {
    long start = System.nanoTime();
    commitAll();
    nanos += System.nanoTime() - start;
  }

  private void commitAll() {
    for (int partition = 0; partition < partitions; partition++) {
      commit(partition);
    }
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
    if (output.isCrowded()) {
      commitAll();
    }
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
      output.commit(partition, chunk, ends[2 * partition] - chunk.address(), records[partition]);
      chunks[partition] = null;
      ends[2 * partition] = 0;
      ends[2 * partition + LIMIT] = 0;
      records[partition] = 0;
    }
  }
}
