package io.weft.spark.shuffle;

import io.weft.spark.config.SpillMemory;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Estimates the size of a partition's first chunk: the bytes that the last map task of the shuffle
 * on this executor wrote to the partition, or a default. A good estimate saves index entries and
 * allocations.
 *
 * <p>Thread-safe.
 */
final class ChunkSizes {
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
    long max = SpillMemory.mostChunkBytes(segmentBytes);
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
