package io.weft.examples.tpch;

import io.trino.tpch.TpchTable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** A folder of TPC-H tables as Parquet, each a folder with the table's name. */
public final class TpchTables {
  private static final String MARKER = "tpch-scale";

  private TpchTables() {}

  /** The tables' names, small ones last: the order to write them in. */
  public static List<String> names() {
    return List.of(
        "lineitem", "orders", "partsupp", "customer", "part", "supplier", "nation", "region");
  }

  /**
   * Whether a folder holds all tables of a scale.
   *
   * @throws IOException if it holds another scale's, or something else
   */
  public static boolean complete(Path folder, double scale) throws IOException {
    Path marker = folder.resolve(MARKER);
    if (Files.exists(marker)) {
      String found = Files.readString(marker).strip();
      if (!found.equals(text(scale))) {
        throw new IOException(
            folder
                + " holds TPC-H tables of scale "
                + found
                + ", not "
                + text(scale)
                + ": choose another folder or that scale");
      }
      return true;
    }
    if (Files.exists(folder)) {
      try (var files = Files.list(folder)) {
        if (files.findAny().isPresent()) {
          throw new IOException(
              folder
                  + " is neither empty nor a complete set of TPC-H tables: choose another folder");
        }
      }
    }
    return false;
  }

  /** Says that all tables are written. */
  public static void markComplete(Path folder, double scale) throws IOException {
    Files.writeString(folder.resolve(MARKER), text(scale) + "\n");
  }

  /** Files of a table: the largest are worth several tasks, the smallest are not. */
  static int parts(TpchTable<?> table, double scale) {
    return switch (table.getTableName()) {
      case "lineitem", "orders", "partsupp", "customer", "part" ->
          (int) Math.max(2, Math.min(64, Math.round(scale * 8)));
      default -> 1;
    };
  }

  private static String text(double scale) {
    return String.format(Locale.ROOT, "%s", scale);
  }
}
