package io.weft.spark.shuffle;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.spark.config.SpillMemory;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;

/**
 * The open chunk of every partition, to which a writer copies records. A record spans chunks only
 * if the writer copies it in pieces.
 *
 * <p>For one task thread. Chunks belong to the {@link MapOutputWriter}, which frees them when it is
 * closed.
 */
final class PartitionChunks {
  /** Index of a chunk's end, after the address of its next byte. */
  private static final int LIMIT = 1;

  /** Minimum bytes of a chunk, unless its only record is smaller. */
  private static final long LEAST = 512;

  private static final long NEARLY_FULL = 16;

  private final MapOutputWriter output;
  private final TaskContext context;
  private final long[] lastBytes;
  private final long maxChunk;
  private final CommitListener listener;
  private final int partitions;
  private final int headerBytes;

  private final long[] ends;
  private final int[] records;
  private final long[] nextBytes;
  private final Extent[] chunks;
  private long nanos;

  /**
   * Chunks of one map task.
   *
   * @param lastBytes bytes by partition of the shuffle's previous map output, or null
   * @param maxChunk maximum bytes of a chunk, unless one record needs more
   * @param headerBytes room before the first record of each chunk
   * @param listener observes the chunks
   */
  PartitionChunks(
      MapOutputWriter output,
      TaskContext context,
      int partitions,
      long[] lastBytes,
      long maxChunk,
      int headerBytes,
      CommitListener listener) {
    this.output = output;
    this.context = context;
    this.partitions = partitions;
    this.lastBytes = lastBytes;
    this.maxChunk = maxChunk;
    this.headerBytes = headerBytes;
    this.listener = listener;
    this.ends = new long[2 * partitions];
    this.records = new int[partitions];
    this.nextBytes = new long[partitions];
    this.chunks = new Extent[partitions];
    output.beforeWaiting(this::commitWrittenChunks);
  }

  /**
   * Reserves space for a partition's next record. {@link #wrote} then adds the record to the chunk.
   *
   * @param bytes maximum bytes of the record
   * @return the address to write to
   * @throws IOException if the arena is full
   */
  long room(int partition, long bytes) throws IOException {
    int slot = 2 * partition;
    long at = ends[slot];
    return at + bytes <= ends[slot + LIMIT] ? at : open(partition, bytes);
  }

  /**
   * Adds the written record to the chunk.
   *
   * @param end address after its last byte
   */
  void wrote(int partition, long end) {
    wrotePiece(partition, end);
    endRecord(partition);
  }

  /** Address behind the room that {@link #room} returned. */
  long limit(int partition) {
    return ends[2 * partition + LIMIT];
  }

  /** Whether the open chunk of a partition has records. */
  boolean hasRecords(int partition) {
    return records[partition] > 0;
  }

  /** Maximum bytes of a piece of a record. A longer one would need a longer chunk. */
  long maxPiece() {
    return maxChunk - headerBytes;
  }

  /**
   * Adds a piece of a record to the chunk. {@link #endRecord} follows after the last piece.
   *
   * @param end address after its last byte
   */
  void wrotePiece(int partition, long end) {
    ends[2 * partition] = end;
  }

  /** Counts a record, in the open chunk or else in the next one. */
  void endRecord(int partition) {
    records[partition]++;
  }

  /** Whether less than a sixteenth of the open chunk is free. */
  boolean isNearlyFull(int partition) {
    Extent chunk = chunks[partition];
    return chunk != null
        && ends[2 * partition + LIMIT] - ends[2 * partition] < chunk.length() / NEARLY_FULL;
  }

  /** Commits the open chunk of a partition, or an empty one if there is none. */
  void commitNow(int partition) throws IOException {
    if (chunks[partition] == null) {
      long unused = open(partition, 0);
    }
    long start = System.nanoTime();
    commit(partition);
    nanos += System.nanoTime() - start;
  }

  /** Commits the open chunk of a partition if it has records. */
  void endChunk(int partition) throws IOException {
    if (hasRecords(partition)) {
      commitNow(partition);
    }
  }

  /** Commits every partition's open chunk. */
  void finish() {
    long start = System.nanoTime();
    commitAll();
    nanos += System.nanoTime() - start;
  }

  /**
   * Commits open chunks while the task waits for memory, usually to read more input. Otherwise
   * tasks could wait for each other's open chunks. Empty chunks stay open: the task is about to
   * write to them, or has failed there.
   */
  private void commitWrittenChunks() {
    for (int partition = 0; partition < partitions; partition++) {
      Extent chunk = chunks[partition];
      if (chunk != null && ends[2 * partition] > chunk.address() + headerBytes) {
        commit(partition);
      }
    }
  }

  private void commitAll() {
    for (int partition = 0; partition < partitions; partition++) {
      commit(partition);
    }
  }

  /** Nanoseconds spent on allocating and committing chunks, without the copies. */
  long nanos() {
    return nanos;
  }

  /** Replaces a partition's chunk by one with enough space. Returns its address. */
  private long open(int partition, long bytes) throws IOException {
    long start = System.nanoTime();
    context.killTaskIfInterrupted();
    commit(partition);
    boolean committed = true;
    while (committed && output.isAtShare()) {
      committed = commitLargest();
    }
    long least = headerBytes + bytes;
    Extent chunk = allocate(least, Math.max(least, nextBytes(partition)));
    chunks[partition] = chunk;
    long begin = chunk.address() + headerBytes;
    ends[2 * partition] = begin;
    ends[2 * partition + LIMIT] = chunk.address() + chunk.length();
    nextBytes[partition] = Math.min(2 * chunk.length(), maxChunk);
    nanos += System.nanoTime() - start;
    return begin;
  }

  /**
   * Allocates a chunk of the wanted length. If there is no memory, it commits open chunks, so that
   * no task waits for this task's memory. Then it waits for a short chunk.
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
   * Commits the chunks that are at least as long as the average, even if they are nearly empty.
   * Later chunks are half as long, so that finally a chunk of every partition fits.
   *
   * @return whether it committed a chunk
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
      long end = ends[2 * partition];
      listener.committing(partition, chunk.address(), end, records[partition]);
      output.commit(partition, chunk, end - chunk.address(), records[partition]);
      chunks[partition] = null;
      ends[2 * partition] = 0;
      ends[2 * partition + LIMIT] = 0;
      records[partition] = 0;
    }
  }

  /** Observes chunks before they are committed, and writes what precedes their records. */
  @FunctionalInterface
  interface CommitListener {
    /** A chunk is complete. Its header and records are there during the call. */
    void committing(int partition, long address, long end, int records);
  }

  /**
   * Estimates the size of a partition's first chunk: the bytes that the last map task of the
   * shuffle on this executor wrote to the partition, or a default. A good estimate saves index
   * entries and allocations.
   *
   * <p>Thread-safe.
   */
  static final class ChunkSizes {
    private static final long SMALL = 4L << 10;
    private static final long MEDIUM = 64L << 10;
    private static final long FEW_PARTITIONS = 64;
    private static final long MAX_OF_MANY = 1L << 20;

    private final Map<Integer, long[]> lastBytes = new ConcurrentHashMap<>();
    private final long segmentBytes;

    /** Creates sizes for an arena with segments of that size. */
    ChunkSizes(long segmentBytes) {
      this.segmentBytes = segmentBytes;
    }

    /** Bytes by partition of the last map output of a shuffle, or null before the first. */
    long[] last(int shuffleId) {
      return lastBytes.get(shuffleId);
    }

    /** Records the sizes of a map output. */
    void wrote(int shuffleId, long[] partitionBytes) {
      lastBytes.put(shuffleId, partitionBytes);
    }

    /** Forgets a shuffle. */
    void forget(int shuffleId) {
      lastBytes.remove(shuffleId);
    }

    /**
     * Returns the maximum bytes of a chunk, for a number of partitions. A chunk of a single row may
     * be longer.
     */
    long max(int partitions) {
      long max = SpillMemory.maxChunkBytes(segmentBytes);
      return partitions <= FEW_PARTITIONS ? max : Math.min(max, MAX_OF_MANY);
    }

    /**
     * Returns the bytes of a partition's first chunk.
     *
     * @param last the result of {@link #last}
     */
    static long first(long[] last, int partition, int partitions, long max) {
      long guess = partitions <= FEW_PARTITIONS ? MEDIUM : SMALL;
      if (last != null && last[partition] > 0) {
        guess = last[partition] + (last[partition] >> 3);
      }
      return Math.min(guess, max);
    }
  }
}
