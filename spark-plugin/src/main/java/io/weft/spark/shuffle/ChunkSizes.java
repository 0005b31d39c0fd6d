package io.weft.spark.shuffle;

import io.weft.spark.config.SpillMemory;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * How large the first chunk of a partition is to be: what the last map task of the same shuffle on
 * this executor wrote to it, or a guess. A good first chunk spares copies of nothing, but index
 * entries and trips to the arena.
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

  /** Sizes for an arena of such segments. */
  ChunkSizes(long segmentBytes) {
    this.segmentBytes = segmentBytes;
  }

  /** Bytes by partition of the last map output of a shuffle, or null before the first. */
  long[] last(int shuffleId) {
    return lastBytes.get(shuffleId);
  }

  /** Remembers a map output. */
  void wrote(int shuffleId, long[] partitionBytes) {
    lastBytes.put(shuffleId, partitionBytes);
  }

  /** Forgets a shuffle. */
  void forget(int shuffleId) {
    lastBytes.remove(shuffleId);
  }

  /** Bytes no chunk of a shuffle of so many partitions grows beyond, unless one row needs more. */
  long max(int partitions) {
    long max = SpillMemory.mostChunkBytes(segmentBytes);
    return partitions <= FEW_PARTITIONS ? max : Math.min(max, MAX_OF_MANY);
  }

  /**
   * Bytes of a partition's first chunk.
   *
   * @param last what {@link #last} returned
   */
  static long first(long[] last, int partition, int partitions, long max) {
    long guess = partitions <= FEW_PARTITIONS ? MEDIUM : SMALL;
    if (last != null && last[partition] > 0) {
      guess = last[partition] + (last[partition] >> 3);
    }
    return Math.min(guess, max);
  }
}
