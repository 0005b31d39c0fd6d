package io.weft.examples.bench.collectives;

import java.util.Locale;

/** Formats and parses sizes of messages, in binary units. */
final class Sizes {
  private static final String UNITS = "BKMGT";

  private Sizes() {}

  /** Formats a size as 8 B, 32 KiB or 64 MiB, with one decimal if the number is not whole. */
  static String text(long bytes) {
    double value = bytes;
    int unit = 0;
    while (value >= 1024 && unit < UNITS.length() - 1) {
      value /= 1024;
      unit++;
    }
    String number =
        value == Math.rint(value)
            ? Long.toString((long) value)
            : String.format(Locale.ROOT, "%.1f", value);
    return number + " " + (unit == 0 ? "B" : UNITS.charAt(unit) + "iB");
  }

  private static String wrong(String text) {
    return "not a size such as 8, 32K or 64M: " + text;
  }

  /**
   * Parses 8, 32K, 64M or 1G.
   *
   * @throws IllegalArgumentException if the text has another form or is no positive size
   */
  static long parse(String text) {
    String digits = text.trim().toUpperCase(Locale.ROOT).replaceFirst("I?B$", "");
    int unit = digits.isEmpty() ? -1 : UNITS.indexOf(digits.charAt(digits.length() - 1));
    try {
      long number =
          Long.parseLong(
              unit > 0 ? digits.substring(0, digits.length() - 1).trim() : digits.trim());
      if (number > 0) {
        return Math.multiplyExact(number, 1L << (10 * Math.max(0, unit)));
      }
    } catch (NumberFormatException | ArithmeticException e) {
      throw new IllegalArgumentException(wrong(text), e);
    }
    throw new IllegalArgumentException(wrong(text));
  }
}
