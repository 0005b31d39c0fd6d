package io.weft.spark.shuffle;

import io.weft.catalog.MapOutputWriter;
import io.weft.memory.ArenaFullException;
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

  /** Bytes below which no chunk is made smaller, unless its only record is. */
  private static final long LEAST = 512;

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
    output.beforeWaiting(this::giveWay);
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

  /**
   * The task waits for memory, as a rule to read on: its chunks are not to be what others wait for
   * that wait for the same. A chunk that nothing is in is about to be written to, or of a task that
   * failed there.
   */
  private void giveWay() {
    for (int partition = 0; partition < partitions; partition++) {
      if (records[partition] > 0) {
        commit(partition);
      }
    }
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
    boolean committed = true;
    while (committed && output.isCrowded()) {
      committed = commitLargest();
    }
    Extent chunk = allocate(bytes, Math.max(bytes, nextBytes(partition)));
    chunks[partition] = chunk;
    ends[2 * partition] = chunk.address();
    ends[2 * partition + LIMIT] = chunk.address() + chunk.length();
    nextBytes[partition] = Math.min(2 * chunk.length(), maxChunk);
    nanos += System.nanoTime() - start;
    return chunk.address();
  }

  /**
   * A chunk as long as is wanted. Where there is no room the others are committed, so that nobody
   * waits for memory that this task has, and a short one is waited for.
   */
  private Extent allocate(long bytes, long wanted) throws IOException {
    try {
      return output.allocateNow(wanted);
    } catch (ArenaFullException e) {
      commitAll();
      return output.allocate(Math.max(bytes, LEAST));
    }
  }

  /**
   * Commits the chunks that are at least as long as the average, however little is in them. Those
   * that follow are half as long, so that in the end there is room for one of every partition.
   *
   * @return whether there was one
   */
  private boolean commitLargest() {
    long total = 0;
    int open = 0;
    for (Extent chunk : chunks) {
      total += chunk == null ? 0 : chunk.length();
      open += chunk == null ? 0 : 1;
    }
    for (int partition = 0; partition < partitions; partition++) {
      Extent chunk = chunks[partition];
      if (chunk != null && chunk.length() * open >= total) {
        commit(partition);
        nextBytes[partition] = Math.max(LEAST, chunk.length() / 2);
      }
    }
    return open > 0;
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
