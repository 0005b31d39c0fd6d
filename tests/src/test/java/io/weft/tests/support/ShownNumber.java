package io.weft.tests.support;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The number in a cell of a table of the Weft tab. */
public final class ShownNumber {
  private static final Pattern LAST =
      Pattern.compile("([0-9.,]+) ?(B|KiB|MiB|ms|s|min)?( \\([0-9,]+\\))?$");

  private ShownNumber() {}

  /** The last number of a cell, in bytes or milliseconds if it has a unit; 0 for "–". */
  public static double of(String cell) {
    Matcher found = LAST.matcher(cell);
    if (!found.find()) {
      assertThat(cell).isEqualTo("–");
      return 0;
    }
    double value = Double.parseDouble(found.group(1).replace(",", ""));
    String unit = found.group(2) == null ? "" : found.group(2);
    return value
        * switch (unit) {
          case "KiB" -> 1 << 10;
          case "MiB" -> 1 << 20;
          case "s" -> 1_000;
          case "min" -> 60_000;
          default -> 1;
        };
  }
}
