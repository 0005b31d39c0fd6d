package io.weft.collectives.symmetric;

import io.weft.memory.OffsetLedger;
import java.nio.file.Path;
import java.util.Objects;

/**
 * Options of a symmetric arena. They are the same on all ranks.
 *
 * @param folder where segment files exist until every rank has mapped them; on a memory file system
 *     if there is one, and the same for all ranks
 * @param segmentBytes how much each rank reserves at a time, 4 KiB to 2 GiB - 128; a longer window
 *     gets its own segment
 * @param poison whether freed memory is overwritten, so a late use is noticed
 */
public record SymmetricOptions(Path folder, long segmentBytes, boolean poison) {
  static final long MAX_BYTES = Integer.MAX_VALUE & -OffsetLedger.ALIGNMENT;

  public SymmetricOptions {
    Objects.requireNonNull(folder, "folder");
    if (segmentBytes < 4096 || segmentBytes > MAX_BYTES) {
      throw new IllegalArgumentException(
          "segmentBytes is " + segmentBytes + "; allowed are 4 KiB to 2 GiB - 128");
    }
  }

  /** Segments of 16 MiB in this folder, without poison. */
  public static SymmetricOptions in(Path folder) {
    return new SymmetricOptions(folder, 16L << 20, false);
  }

  public SymmetricOptions withSegmentBytes(long bytes) {
    return new SymmetricOptions(folder, bytes, poison);
  }

  public SymmetricOptions withPoison(boolean wanted) {
    return new SymmetricOptions(folder, segmentBytes, wanted);
  }
}
