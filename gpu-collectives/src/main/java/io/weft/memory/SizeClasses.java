package io.weft.memory;

/**
 * Sorts lengths into classes for the free lists. Up to 63 granules each length has its own class.
 * Above that there are 32 equal steps per power of two, so the lengths of one class differ by less
 * than 1/32.
 */
final class SizeClasses {
  private static final int STEP_BITS = 5;
  private static final int STEPS = 1 << STEP_BITS;

  /** One more than the class of the longest block. */
  static final int COUNT = of(Integer.MAX_VALUE / Granules.BYTES) + 1;

  private SizeClasses() {}

  /** The class of a free block of this length. */
  static int of(int granules) {
    if (granules < STEPS) {
      return granules;
    }
    int magnitude = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(granules);
    int shift = magnitude - STEP_BITS;
    return (shift << STEP_BITS) + (granules >>> shift);
  }
}
