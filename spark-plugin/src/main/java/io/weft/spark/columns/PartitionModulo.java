package io.weft.spark.columns;

/**
 * Computes the non-negative remainder of hashes by a constant divisor without a division: Lemire,
 * Kaser and Kurz, "Faster remainder by direct computation" (2019). Immutable.
 */
final class PartitionModulo {
  private final int divisor;

  /** 2⁶⁴ / divisor, rounded up; 0 for the divisor 1, whose remainder is always 0. */
  private final long inverse;

  /** Excess of a negative hash's remainder when the hash is treated as unsigned. */
  private final int unsignedExcess;

  /**
   * @param divisor at least 1
   */
  PartitionModulo(int divisor) {
    this.divisor = divisor;
    this.inverse = Long.divideUnsigned(-1L, divisor) + 1;
    this.unsignedExcess = (int) ((1L << Integer.SIZE) % divisor);
  }

  /** Replaces hashes by their remainders. */
  void apply(int[] hashes, int count) {
    for (int i = 0; i < count; i++) {
      hashes[i] = of(hashes[i]);
    }
  }

  int of(int hash) {
    long fraction = inverse * (hash & 0xffffffffL);
    // The fraction is unsigned, but multiplyHigh treats it as signed.
    long high = Math.multiplyHigh(fraction, divisor) + (fraction >> 63 & divisor);
    int remainder = (int) high - (hash >> 31 & unsignedExcess);
    return remainder + (remainder >> 31 & divisor);
  }
}
