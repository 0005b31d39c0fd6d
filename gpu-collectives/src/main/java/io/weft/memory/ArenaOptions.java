package io.weft.memory;

import io.weft.memory.ExtentLedger.Granules;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;

/**
 * The places and budgets of an arena.
 *
 * @param folder the folder of the segment files, or of the links to them; exists and is writable
 * @param diskFolders the folders of the files of disk segments, used in turn; empty for no disk
 * @param segmentBytes size of a segment, 4 KiB to 1 GiB; rounded up to a multiple of 64
 * @param memoryBytes most bytes of segments of kind {@link MemoryKind#SHARED_MEMORY}; 0 for none
 * @param diskBytes most bytes of segments of kind {@link MemoryKind#DISK}; 0 for none
 * @param marginBytes the bytes that must stay free in a file system after a segment was added
 * @param privateMemory memory of kind {@link MemoryKind#PRIVATE}, which is used instead of disk
 *     when shared memory is full; 0 bytes, or at least two segments, one for each part. With it,
 *     only allocations for {@link SpillPolicy.Use#DISK} reach a disk.
 * @param limit is asked before each new segment of shared memory
 * @param names the names of these options in messages
 */
public record ArenaOptions(
    Path folder,
    List<Path> diskFolders,
    long segmentBytes,
    long memoryBytes,
    long diskBytes,
    long marginBytes,
    PrivateMemory privateMemory,
    MemoryLimit limit,
    SettingNames names) {
  static final long MIN_SEGMENT_BYTES = 4096;
  static final long MAX_SEGMENT_BYTES = 1L << 30;

  public ArenaOptions {
    Objects.requireNonNull(folder, "folder");
    Objects.requireNonNull(limit, "limit");
    Objects.requireNonNull(names, "names");
    diskFolders = List.copyOf(diskFolders);
    if (segmentBytes < MIN_SEGMENT_BYTES || segmentBytes > MAX_SEGMENT_BYTES) {
      throw new IllegalArgumentException(
          "segmentBytes is " + segmentBytes + "; allowed are 4 KiB to 1 GiB");
    }
    segmentBytes = Granules.bytes(Granules.covering(segmentBytes));
    requireNotNegative("memoryBytes", memoryBytes);
    requireNotNegative("diskBytes", diskBytes);
    requireNotNegative("marginBytes", marginBytes);
    if (privateMemory.bytes() != 0
        && privateMemory.bytes() < SpillPolicy.leastPrivateBytes(segmentBytes)) {
      throw new IllegalArgumentException(
          "private memory of %d bytes; allowed are 0 or at least two segments of %d"
              .formatted(privateMemory.bytes(), segmentBytes));
    }
  }

  /** Options under their own names, without a limit. */
  public ArenaOptions(
      Path folder,
      List<Path> diskFolders,
      long segmentBytes,
      long memoryBytes,
      long diskBytes,
      long marginBytes,
      PrivateMemory privateMemory) {
    this(
        folder,
        diskFolders,
        segmentBytes,
        memoryBytes,
        diskBytes,
        marginBytes,
        privateMemory,
        MemoryLimit.NONE,
        SettingNames.OWN);
  }

  /** Options of an arena without private memory. */
  public ArenaOptions(
      Path folder,
      List<Path> diskFolders,
      long segmentBytes,
      long memoryBytes,
      long diskBytes,
      long marginBytes) {
    this(
        folder, diskFolders, segmentBytes, memoryBytes, diskBytes, marginBytes, PrivateMemory.NONE);
  }

  private static void requireNotNegative(String name, long value) {
    if (value < 0) {
      throw new IllegalArgumentException(name + " is " + value + "; it must not be negative");
    }
  }

  /**
   * How much private memory an arena may use. {@link SpillPolicy} divides it into a transient and a
   * retained part.
   *
   * @param bytes of both parts; 0 for an arena without private memory
   * @param users how many threads need transient memory at once, about; at least 1
   * @param timeout how long an allocation of transient memory waits
   */
  public record PrivateMemory(long bytes, int users, Duration timeout) {
    /** The value for an arena without private memory. */
    public static final PrivateMemory NONE = new PrivateMemory(0, 1, Duration.ZERO);

    public PrivateMemory {
      Objects.requireNonNull(timeout, "timeout");
      if (bytes < 0 || users < 1 || timeout.isNegative()) {
        throw new IllegalArgumentException(
            "private memory of %d bytes for %d users with a timeout of %s"
                .formatted(bytes, users, timeout));
      }
    }

    /** The size of the retained part, in an arena with segments of this size. */
    public long retainedBytes(long segmentBytes) {
      return SpillPolicy.retainedBytes(bytes, segmentBytes);
    }

    /** The size of the transient part, in an arena with segments of this size. */
    public long transientBytes(long segmentBytes) {
      return bytes - retainedBytes(segmentBytes);
    }

    /** A text such as "512.0 MiB of transient and 512.0 MiB of retained private memory". */
    public String describe(long segmentBytes) {
      return "%s of transient and %s of retained private memory"
          .formatted(
              Bytes.text(transientBytes(segmentBytes)), Bytes.text(retainedBytes(segmentBytes)));
    }
  }
}
