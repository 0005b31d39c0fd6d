package io.weft.spark.ui;

import java.util.Comparator;
import java.util.List;
import org.apache.spark.util.Utils;

/** Texts of the Weft tab. Stateless. */
final class Texts {
  /** Puts shorter names first, so that numbers are in numeric order. */
  static final Comparator<String> NUMBERS_FIRST =
      Comparator.comparing((String name) -> !isNumber(name))
          .thenComparing(name -> isNumber(name) ? name.length() : 0)
          .thenComparing(Comparator.naturalOrder());

  private static final String SPECIAL = "&<>\"";
  private static final List<String> UNITS = List.of("B", "KiB", "MiB", "GiB", "TiB", "PiB");

  /** Ten times as many, rounded, still fit a long. */
  private static final long MOST_BYTES = Long.MAX_VALUE / 20;

  private Texts() {}

  private static boolean isNumber(String name) {
    for (int i = 0; i < name.length(); i++) {
      if (name.charAt(i) < '0' || name.charAt(i) > '9') {
        return false;
      }
    }
    return !name.isEmpty();
  }

  /**
   * Escapes a text for HTML and SVG in UTF-8, also between double quotes. Null gives an empty text:
   * a log of another version may lack it.
   */
  static String escape(String text) {
    if (text == null) {
      return "";
    }
    for (int i = 0; i < text.length(); i++) {
      if (SPECIAL.indexOf(text.charAt(i)) >= 0) {
        return text.replace("&", "&amp;")
            .replace("<", "&lt;")
            .replace(">", "&gt;")
            .replace("\"", "&quot;");
      }
    }
    return text;
  }

  /**
   * Formats bytes with a unit, as the rest of Spark's UI does. A page has thousands of them, so it
   * avoids a pattern.
   */
  static String bytes(long bytes) {
    if (bytes < 0 || bytes > MOST_BYTES) {
      return Utils.bytesToString(bytes);
    }
    int unit = 0;
    while (unit < UNITS.size() - 1 && bytes >= 2 * size(unit + 1)) {
      unit++;
    }
    long tenths = (bytes * 10 + size(unit) / 2) / size(unit);
    return tenths / 10 + "." + tenths % 10 + " " + UNITS.get(unit);
  }

  private static long size(int unit) {
    return 1L << (10 * unit);
  }

  /** Formats a number with separators, without a pattern as {@link #bytes}. */
  static String number(long number) {
    StringBuilder text = new StringBuilder().append(number);
    for (int place = text.length() - 3; place > (number < 0 ? 1 : 0); place -= 3) {
      text.insert(place, ',');
    }
    return text.toString();
  }

  /** Formats a duration. */
  static String millis(long millis) {
    return Utils.msDurationToString(millis);
  }
}
