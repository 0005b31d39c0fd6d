package io.weft.memory;

import java.util.Locale;

/** Formats sizes for messages. */
public final class Bytes {
  private static final String[] UNITS = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

  private Bytes() {}

  /** A text such as "0 B", "1023 B" or "64.0 MiB". */
  public static String text(long bytes) {
    if (bytes < 1024) {
      return bytes + " B";
    }
    int unit = (Long.SIZE - 1 - Long.numberOfLeadingZeros(bytes)) / 10;
    return String.format(
        Locale.ROOT, "%.1f %s", bytes / (double) (1L << (10 * unit)), UNITS[unit - 1]);
  }
}
