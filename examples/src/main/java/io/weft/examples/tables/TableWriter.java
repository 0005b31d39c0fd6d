package io.weft.examples.tables;

import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Writes tables in a separate process, which then ends. The generator of TPC-H keeps 300 MB of text
 * until its process ends, and the compared sides must not hold that memory. For one thread.
 */
public final class TableWriter {
  private final SideLauncher launcher;
  private final Cleanup cleanup;
  private final Progress progress;

  /** Adds the process that it starts to a cleanup, in case it is interrupted. */
  public TableWriter(SideLauncher launcher, Cleanup cleanup, Progress progress) {
    this.launcher = launcher;
    this.cleanup = cleanup;
    this.progress = progress;
  }

  /**
   * Returns a folder with all tables of a scale, which it writes if necessary.
   *
   * @param data the folder to use; empty for a temporary one
   * @param work the parent of the temporary folder
   * @throws IOException if the folder has other content
   */
  public Path provide(TableSet tables, Optional<Path> data, WorkFolder work, double scale)
      throws IOException, InterruptedException {
    Path folder = data.isPresent() ? data.get().toAbsolutePath() : work.folder(tables.id());
    if (tables.complete(folder, scale)) {
      progress.step("using the tables in " + folder);
    } else {
      write(tables, folder, scale);
    }
    return folder;
  }

  private void write(TableSet tables, Path folder, double scale)
      throws IOException, InterruptedException {
    Files.createDirectories(folder);
    progress.step("writing " + tables.title() + " tables of scale " + scale + " to " + folder);
    long rows = 0;
    try (SideProcess writer = cleanup.add(launcher.start(SideOptions.writer()))) {
      for (String table : tables.names()) {
        progress.detail("writing table " + table);
        rows += writer.call(tables.write(table, scale, folder.resolve(table).toString()));
      }
    }
    tables.markComplete(folder, scale);
    progress.step(String.format("%,d rows of %s tables written", rows, tables.title()));
  }
}
