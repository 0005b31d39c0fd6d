package io.weft.spark.ui;

import java.util.Comparator;
import java.util.Locale;
import org.apache.commons.text.StringEscapeUtils;
import org.apache.spark.util.Utils;

/** Texts of the Weft tab. Stateless. */
final class Texts {
  /** Puts shorter names first, so that numbers are in numeric order. */
  static final Comparator<String> NUMBERS_FIRST =
      Comparator.comparing((String name) -> !isNumber(name))
          .thenComparing(name -> isNumber(name) ? name.length() : 0)
          .thenComparing(Comparator.naturalOrder());

  private Texts() {}

  private static boolean isNumber(String name) {
    return !name.isEmpty() && name.chars().allMatch(c -> c >= '0' && c <= '9');
  }

  /** Escapes a text for HTML and SVG, also between double quotes. */
  static String escape(String text) {
    return StringEscapeUtils.escapeHtml4(text);
  }

  /** Formats bytes with a unit. */
  static String bytes(long bytes) {
    return Utils.bytesToString(bytes);
  }

  /** Formats a number with separators. */
  static String number(long number) {
    return String.format(Locale.ROOT, "%,d", number);
  }

  /** Formats a duration. */
  static String millis(long millis) {
    return Utils.msDurationToString(millis);
  }
}
