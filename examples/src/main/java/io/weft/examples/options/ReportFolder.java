package io.weft.examples.options;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The option of a benchmark that says where its reports go. */
public final class ReportFolder {
  @Option(
      names = "--out",
      defaultValue = "weft-bench",
      paramLabel = "FOLDER",
      description = "Where the reports go. Default: ${DEFAULT-VALUE}")
  private Path out;

  /**
   * The folder, which is there when this returns: before minutes of measuring, not after.
   *
   * @throws IOException when it cannot be made, with a reason
   */
  public Path create() throws IOException {
    return create(out);
  }

  /** As {@link #create()}, for an option of another name or default. */
  public static Path create(Path folder) throws IOException {
    Path absolute = folder.toAbsolutePath();
    try {
      Files.createDirectories(absolute);
    } catch (IOException e) {
      throw new IOException("reports cannot go to " + absolute + ": " + e, e);
    }
    if (!Files.isWritable(absolute)) {
      throw new IOException("reports cannot go to " + absolute + ": it cannot be written to");
    }
    return absolute;
  }
}
