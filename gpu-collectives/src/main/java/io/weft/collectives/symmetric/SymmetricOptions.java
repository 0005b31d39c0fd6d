package io.weft.collectives.symmetric;

import io.weft.memory.OffsetLedger;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;

/**
 * Options of a symmetric arena. They are the same on all ranks.
 *
 * @param memory where segments come from; their files are visible to all ranks
 * @param cache keeps segments for later communicators; empty to free them
 * @param segmentBytes how much each rank reserves at a time, 4 KiB to 2 GiB - 128; a longer window
 *     gets its own segment
 * @param poison whether freed memory is overwritten, so a late use is noticed
 */
public record SymmetricOptions(
    SegmentMemory memory,
    Optional<CollectiveMemoryCache> cache,
    long segmentBytes,
    boolean poison) {
  static final long MAX_BYTES = Integer.MAX_VALUE & -OffsetLedger.ALIGNMENT;

  /** Enough for small buffers, and filled with zeros in some milliseconds. */
  private static final long SEGMENT_BYTES = 4L << 20;

  public SymmetricOptions {
    Objects.requireNonNull(memory, "memory");
    if (segmentBytes < 4096 || segmentBytes > MAX_BYTES) {
      throw new IllegalArgumentException(
          "segmentBytes is " + segmentBytes + "; allowed are 4 KiB to 2 GiB - 128");
    }
  }

  /** Segments of 4 MiB in this folder, the same for all ranks, without cache and poison. */
  public static SymmetricOptions in(Path folder) {
    return new SymmetricOptions(SegmentMemory.in(folder), Optional.empty(), SEGMENT_BYTES, false);
  }

  /** Segments of 4 MiB, kept in a cache. */
  public static SymmetricOptions cached(SegmentMemory memory, CollectiveMemoryCache cache) {
    return new SymmetricOptions(memory, Optional.of(cache), SEGMENT_BYTES, false);
  }

  public SymmetricOptions withSegmentBytes(long bytes) {
    return new SymmetricOptions(memory, cache, bytes, poison);
  }

  SymmetricOptions withPoison(boolean wanted) {
    return new SymmetricOptions(memory, cache, segmentBytes, wanted);
  }
}
