package io.weft.memory;

import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/**
 * What an arena may use.
 *
 * @param folder where the segment files (or the links to them) appear; exists and is writable
 * @param diskFolders where the files of disk segments are put, used in turn; may be empty: no disk
 * @param segmentBytes size of a segment, 4 KiB to 1 GiB; rounded up to a multiple of 64
 * @param memoryBytes most bytes of segments of kind {@link MemoryKind#SHARED_MEMORY}; 0: none
 * @param diskBytes most bytes of segments of kind {@link MemoryKind#DISK}; 0: none
 * @param marginBytes what a file system must have left after a segment was added to it
 * @param privateMemory with none, {@link SharedArena#allocate} goes on to disk where shared memory
 *     is full. Else it goes on to so many bytes of kind {@link MemoryKind#PRIVATE} at most, so that
 *     nothing lies on disk but what {@link SharedArena#allocateDisk} was asked for; at least two
 *     segments, one for each part
 * @param names of these options in messages
 */
public record ArenaOptions(
    Path folder,
    List<Path> diskFolders,
    long segmentBytes,
    long memoryBytes,
    long diskBytes,
    long marginBytes,
    PrivateMemory privateMemory,
    SettingNames names) {
  static final long LEAST_SEGMENT_BYTES = 4096;
  static final long MOST_SEGMENT_BYTES = 1L << 30;

  public ArenaOptions {
    Objects.requireNonNull(folder, "folder");
    Objects.requireNonNull(names, "names");
    diskFolders = List.copyOf(diskFolders);
    if (segmentBytes < LEAST_SEGMENT_BYTES || segmentBytes > MOST_SEGMENT_BYTES) {
      throw new IllegalArgumentException(
          "segmentBytes is " + segmentBytes + "; allowed are 4 KiB to 1 GiB");
    }
    segmentBytes = Granules.bytes(Granules.covering(segmentBytes));
    requireNotNegative("memoryBytes", memoryBytes);
    requireNotNegative("diskBytes", diskBytes);
    requireNotNegative("marginBytes", marginBytes);
    if (privateMemory.bytes() != 0 && privateMemory.bytes() < 2 * segmentBytes) {
      throw new IllegalArgumentException(
          "private memory of %d bytes; allowed are 0 and from two segments of %d on"
              .formatted(privateMemory.bytes(), segmentBytes));
    }
  }

  /** Options under their own names. */
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
        SettingNames.OWN);
  }

  /** Of an arena without private memory. */
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
}
