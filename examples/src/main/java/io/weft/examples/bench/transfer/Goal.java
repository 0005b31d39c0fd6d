package io.weft.examples.bench.transfer;

/**
 * What a row has to reach, and what it did.
 *
 * @param text the goal in words
 * @param reached the number that counts, from medians or from the worst run as the text says
 * @param unit of it
 * @param met whether that is enough
 */
public record Goal(String text, double reached, String unit, boolean met) {
  static Goal atLeast(String text, double reached, String unit, double wanted) {
    return new Goal(text, reached, unit, reached >= wanted);
  }

  static Goal atMost(String text, double reached, String unit, double wanted) {
    return new Goal(text, reached, unit, reached <= wanted);
  }
}
