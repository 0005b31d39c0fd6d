package io.weft.memory;

/**
 * The arena counts in granules of 64 bytes (a cache line, and Arrow's alignment), so that a place
 * or a length within a segment is an int.
 */
final class Granules {
  static final int BYTES = 64;

  /** Largest extent and segment: what one MappedByteBuffer can map. */
  static final long MOST_BYTES = Integer.MAX_VALUE & -BYTES;

  private static final int SHIFT = 6;

  private Granules() {}

  /** Fewest granules that hold so many bytes. */
  static int covering(long bytes) {
    if (bytes < 1 || bytes > MOST_BYTES) {
      throw new IllegalArgumentException(
          bytes + " bytes asked of the arena; allowed are 1 to " + MOST_BYTES);
    }
    return (int) ((bytes + BYTES - 1) >>> SHIFT);
  }

  static long bytes(int granules) {
    return (long) granules << SHIFT;
  }
}
