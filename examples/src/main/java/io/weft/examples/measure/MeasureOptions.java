package io.weft.examples.measure;

import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/**
 * The options that every benchmark has, as a mixin of picocli, and what follows from them: to
 * measure or to read an earlier report, then to print and to write it. For the thread of the
 * command line.
 */
public final class MeasureOptions {
  @Option(
      names = "--quick",
      description = "Less work and fewer runs; for how long, see the description above")
  private boolean quick;

  @Option(
      names = "--runs",
      paramLabel = "N",
      description =
          "Runs that count, on each side. Default: 7 (bench feed: 5, replay: 3), or fewer with --quick")
  private Integer runs;

  @Option(
      names = "--from",
      paramLabel = "JSON",
      description = "Write the reports of an earlier run again from its JSON; measures nothing")
  private Path from;

  @Option(
      names = "--out",
      defaultValue = "weft-bench",
      paramLabel = "FOLDER",
      description = "Where the reports go. Default: ${DEFAULT-VALUE}")
  private Path out;

  /** Measures and returns a report. */
  @FunctionalInterface
  public interface Measurement<R extends Report> {
    /** Shows its steps on the progress line. */
    R run(Progress progress) throws IOException, InterruptedException;
  }

  /** As {@link Measurement}, but may last for hours. */
  @FunctionalInterface
  public interface LongMeasurement<R extends Report> {
    /**
     * Shows its steps on the progress line.
     *
     * @param soFar takes what an interruption has to leave
     */
    R run(Progress progress, SoFar<R> soFar) throws IOException, InterruptedException;
  }

  /** Keeps the report of what has been measured so far. */
  @FunctionalInterface
  public interface SoFar<R extends Report> {
    /** Replaces the report before. */
    void keep(R report) throws IOException;
  }

  /** Whether to measure less. */
  public boolean quick() {
    return quick;
  }

  /**
   * The number of runs that count.
   *
   * @param full the default
   * @param less the default of a quick measurement
   * @throws IllegalArgumentException if the option is less than 1
   */
  public int runs(int full, int less) {
    int chosen = runs != null ? runs : quick ? less : full;
    Rounds.requireRuns(chosen);
    return chosen;
  }

  /**
   * Creates the folder of the reports and returns its path. Commands call it before they measure,
   * so that minutes of measuring are not lost.
   *
   * @throws IOException with a reason when the folder cannot be created or written to
   */
  public Path createFolder() throws IOException {
    return createFolder(out);
  }

  /** As {@link #createFolder()}, for an option with another default. */
  public static Path createFolder(Path folder) throws IOException {
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

  /**
   * Measures, or reads the report of an earlier run; then prints and writes the report.
   *
   * @return the exit status: 0 if the report passed, else 1
   */
  public <R extends Report> int report(Class<R> type, Measurement<R> measurement)
      throws IOException, InterruptedException {
    return report(type, (progress, soFar) -> measurement.run(progress));
  }

  /** As {@link #report(Class, Measurement)}; also writes each report of what there is so far. */
  public <R extends Report> int report(Class<R> type, LongMeasurement<R> measurement)
      throws IOException, InterruptedException {
    Path folder = createFolder();
    R report =
        from == null ? measure(measurement, part -> part.write(folder)) : Report.read(from, type);
    System.out.println();
    System.out.print(report.text().toText());
    report.write(folder).forEach(file -> System.out.println("Written: " + file));
    return report.passed() ? 0 : 1;
  }

  private static <R extends Report> R measure(LongMeasurement<R> measurement, SoFar<R> soFar)
      throws IOException, InterruptedException {
    Progress progress = Progress.toErrors();
    R report = measurement.run(progress, soFar);
    progress.clear();
    return report;
  }
}
