package io.weft.spark.feed;

/** Combines several numbers into a seed with the finalizer of SplitMix64. */
final class Seeds {
  private static final long GOLDEN_GAMMA = 0x9E3779B97F4A7C15L;

  private Seeds() {}

  static long of(long seed, long... parts) {
    long mixed = mix(seed);
    for (long part : parts) {
      mixed = mix(mixed + GOLDEN_GAMMA * (part + 1));
    }
    return mixed;
  }

  private static long mix(long value) {
    long z = (value ^ (value >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }
}
