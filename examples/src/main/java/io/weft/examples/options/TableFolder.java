package io.weft.examples.options;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import picocli.CommandLine.Option;

/** The option of a command that reads tables of TPC-H. */
public final class TableFolder {
  @Option(
      names = "--data",
      paramLabel = "FOLDER",
      description = "Where the tables are, or are to be kept. Default: a temporary folder")
  private Path data;

  /**
   * The folder, if there is to be one.
   *
   * @throws IllegalArgumentException when there is a file in its place
   */
  public Optional<Path> folder() {
    if (data != null && Files.exists(data) && !Files.isDirectory(data)) {
      throw new IllegalArgumentException("--data has to name a folder, and " + data + " is none");
    }
    return Optional.ofNullable(data);
  }
}
