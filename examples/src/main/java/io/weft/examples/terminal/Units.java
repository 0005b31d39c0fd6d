package io.weft.examples.terminal;

import java.time.Duration;
import java.util.Locale;

/** Formats numbers for people. The decimal separator is a point in all locales. */
public final class Units {
  private static final String[] BYTE_UNITS = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};

  private Units() {}

  /**
   * Formats seconds with about three significant digits: {@code 0.412}, {@code 3.41}, {@code 12.3}.
   */
  public static String seconds(double seconds) {
    double size = Math.abs(seconds);
    int digits = size < 1 ? 3 : size < 10 ? 2 : 1;
    return String.format(Locale.ROOT, "%." + digits + "f", seconds);
  }

  /** Formats bytes in powers of 1,000: {@code 812 kB}, {@code 1.23 GB}. */
  public static String bytes(long bytes) {
    double value = bytes;
    int unit = 0;
    while (Math.abs(value) >= 999.5 && unit < BYTE_UNITS.length - 1) {
      value /= 1000;
      unit++;
    }
    int digits = unit == 0 || Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
    return String.format(Locale.ROOT, "%." + digits + "f %s", value, BYTE_UNITS[unit]);
  }

  /** Formats a factor, as {@code 1.34×}; a dash if it is not finite or not positive. */
  public static String factor(double factor) {
    if (!Double.isFinite(factor) || factor <= 0) {
      return "–";
    }
    return String.format(Locale.ROOT, factor < 9.995 ? "%.2f×" : "%.1f×", factor);
  }

  /** Formats minutes and seconds, as {@code 2:05}. */
  public static String clock(Duration duration) {
    return String.format(Locale.ROOT, "%d:%02d", duration.toMinutes(), duration.toSecondsPart());
  }
}
