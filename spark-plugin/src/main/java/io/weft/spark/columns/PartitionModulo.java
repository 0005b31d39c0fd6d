package io.weft.spark.columns;

/**
 * The non-negative remainder of hashes by a number that is known for long, without a division:
 * Lemire, Kaser and Kurz, "Faster remainder by direct computation" (2019). Immutable.
 */
final class PartitionModulo {
  private final int divisor;

  /** 2⁶⁴ / divisor, rounded up; 0 for the divisor 1, which leaves no remainder. */
  private final long inverse;

  /** What the remainder of a negative hash has too much when it is taken for an unsigned one. */
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
    // The fraction is unsigned, multiplyHigh takes it for signed.
    long high = Math.multiplyHigh(fraction, divisor) + (fraction >> 63 & divisor);
    int remainder = (int) high - (hash >> 31 & unsignedExcess);
    return remainder + (remainder >> 31 & divisor);
  }
}
