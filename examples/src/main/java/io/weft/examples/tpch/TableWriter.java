package io.weft.examples.tpch;

import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.Sides;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Writes the tables in a process of its own, which then ends: the generator keeps 300 MB of text
 * for as long as its process lives, and the sides that are compared should not carry that.
 */
public final class TableWriter {
  private final SideLauncher launcher;
  private final Cleanup cleanup;
  private final Progress progress;

  /** The process it starts is added to what is cleaned up, for the case that it is interrupted. */
  public TableWriter(SideLauncher launcher, Cleanup cleanup, Progress progress) {
    this.launcher = launcher;
    this.cleanup = cleanup;
    this.progress = progress;
  }

  /** Writes all tables of a scale to a folder. */
  public void write(Path folder, double scale) throws IOException, InterruptedException {
    Files.createDirectories(folder);
    progress.step("writing TPC-H tables of scale " + scale + " to " + folder);
    long rows = 0;
    try (SideProcess writer = cleanup.add(launcher.start(Sides.writer()))) {
      for (String table : TpchTables.names()) {
        progress.detail("writing table " + table);
        rows += writer.call(new WriteTable(table, scale, folder.resolve(table).toString()));
      }
    }
    TpchTables.markComplete(folder, scale);
    progress.step(String.format("%,d rows of TPC-H tables written", rows));
  }
}
