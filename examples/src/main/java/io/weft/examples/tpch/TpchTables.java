package io.weft.examples.tpch;

import io.trino.tpch.TpchTable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import picocli.CommandLine.Option;

/** A folder of TPC-H tables: each table is a Parquet folder with its name. */
public final class TpchTables {
  private static final String MARKER = "tpch-scale";

  private TpchTables() {}

  /** Returns the names of the tables in the order to write them: small tables last. */
  public static List<String> names() {
    return List.of(
        "lineitem", "orders", "partsupp", "customer", "part", "supplier", "nation", "region");
  }

  /**
   * Whether a folder holds all tables of a scale.
   *
   * @throws IOException if it holds tables of another scale or other files
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

  /** Marks the folder: all tables are written. */
  public static void markComplete(Path folder, double scale) throws IOException {
    Files.writeString(folder.resolve(MARKER), text(scale) + "\n");
  }

  /** Returns the number of files of a table: several for large tables, one for small ones. */
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

  /** The option of a command that reads tables of TPC-H, as a mixin of picocli. */
  public static final class FolderOption {
    @Option(
        names = "--data",
        paramLabel = "FOLDER",
        description =
            "Folder of the tables; they are written there if it is empty. Default: a temporary"
                + " folder")
    private Path data;

    /**
     * Returns the folder, if the option is set.
     *
     * @throws IllegalArgumentException if the path is a file
     */
    public Optional<Path> folder() {
      if (data != null && Files.exists(data) && !Files.isDirectory(data)) {
        throw new IllegalArgumentException(
            "--data has to name a folder, but " + data + " is a file");
      }
      return Optional.ofNullable(data);
    }
  }
}
