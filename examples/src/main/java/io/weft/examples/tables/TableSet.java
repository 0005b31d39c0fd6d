package io.weft.examples.tables;

import io.weft.examples.side.SideTask;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import picocli.CommandLine.Option;

/**
 * The tables of a benchmark. In a folder of tables, each is a Parquet folder with its name. The
 * tables depend only on the scale.
 */
public interface TableSet {
  /** A short name, fit for a file name. */
  String id();

  /** The name for people. */
  String title();

  /** The names of the tables in the order to write them: small tables last. */
  List<String> names();

  /**
   * The task that generates one table and writes it as Parquet. Its result is the number of rows.
   *
   * @param table its name
   * @param scale the scale factor: 1 is about 1 GB as text
   * @param folder the folder to write to; must not exist
   */
  SideTask<Long> write(String table, double scale, String folder);

  /**
   * Whether a folder holds all tables of a scale.
   *
   * @throws IOException if it holds tables of another scale or other files
   */
  default boolean complete(Path folder, double scale) throws IOException {
    Path marker = marker(folder);
    if (Files.exists(marker)) {
      String found = Files.readString(marker).strip();
      if (!found.equals(text(scale))) {
        throw new IOException(
            String.format(
                "%s holds %s tables of scale %s, not %s: choose another folder or that scale",
                folder, title(), found, text(scale)));
      }
      return true;
    }
    if (Files.exists(folder)) {
      try (var files = Files.list(folder)) {
        if (files.findAny().isPresent()) {
          throw new IOException(
              folder
                  + " is neither empty nor a complete set of "
                  + title()
                  + " tables: choose another folder");
        }
      }
    }
    return false;
  }

  /** Marks the folder: all tables are written. */
  default void markComplete(Path folder, double scale) throws IOException {
    Files.writeString(marker(folder), text(scale) + "\n");
  }

  /** Returns the number of files of a large table. */
  static int parts(double scale) {
    return (int) Math.max(2, Math.min(64, Math.round(scale * 8)));
  }

  private Path marker(Path folder) {
    return folder.resolve(id() + "-scale");
  }

  private static String text(double scale) {
    return String.format(Locale.ROOT, "%s", scale);
  }

  /** The option of a command that reads tables, as a mixin of picocli. */
  final class FolderOption {
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
