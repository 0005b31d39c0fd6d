package io.weft.memory;

/**
 * The unit of the arena: granules of 64 bytes, a cache line and Arrow's alignment. In this unit an
 * offset or a length within a segment is an int.
 */
final class Granules {
  static final int BYTES = 64;

  /** The longest extent and segment: the most that one MappedByteBuffer can map. */
  static final long MAX_BYTES = Integer.MAX_VALUE & -BYTES;

  private static final int SHIFT = 6;

  private Granules() {}

  /** The fewest granules that hold that many bytes. */
  static int covering(long bytes) {
    if (bytes < 1 || bytes > MAX_BYTES) {
      throw new IllegalArgumentException(
          bytes + " bytes requested from the arena; allowed are 1 to " + MAX_BYTES);
    }
    return (int) ((bytes + BYTES - 1) >>> SHIFT);
  }

  static long bytes(int granules) {
    return (long) granules << SHIFT;
  }
}
