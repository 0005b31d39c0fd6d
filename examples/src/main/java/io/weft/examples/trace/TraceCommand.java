package io.weft.examples.trace;

import io.weft.examples.terminal.Units;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Parses {@code weft trace}. */
@Command(
    name = "trace",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    description = {
      "Merges the recordings of executors (spark.weft.trace.folder) into one file that"
          + " ui.perfetto.dev and chrome://tracing open.",
      "Times are those of the executors' clocks; hosts are not aligned."
    })
public final class TraceCommand implements Callable<Integer> {
  @Spec private CommandSpec spec;

  @Parameters(
      arity = "1..*",
      paramLabel = "FILE",
      description = "Recordings of Java Flight Recorder, with the extension jfr")
  private List<Path> files;

  @Option(
      names = "--out",
      defaultValue = "weft-trace.json",
      paramLabel = "FILE",
      description = "The file to write. Default: ${DEFAULT-VALUE}")
  private Path out;

  @Override
  public Integer call() throws IOException {
    PrintWriter console = spec.commandLine().getOut();
    Merged merged = merge(files, out);
    merged.warnings().forEach(warning -> console.println("warning: " + warning));
    console.println(
        "%d events of %d executors in %s (%s)"
            .formatted(merged.events(), merged.executors(), out, Units.bytes(Files.size(out))));
    console.flush();
    return 0;
  }

  /**
   * The result of a merge.
   *
   * @param warnings about files that are no recordings, were cut off or have no events of Weft
   */
  record Merged(long events, int executors, List<String> warnings) {}

  /**
   * Merges recordings. Reads them twice and holds one event at a time.
   *
   * @throws IOException if no file is a recording with events of Weft, or the output cannot be
   *     written; then no output is left
   */
  static Merged merge(List<Path> files, Path out) throws IOException {
    List<RecordingEvents> recordings = new ArrayList<>();
    List<String> unreadable = new ArrayList<>();
    for (Path file : files) {
      try {
        recordings.add(RecordingEvents.of(file));
      } catch (IOException e) {
        unreadable.add(e.getMessage());
      }
    }
    if (recordings.isEmpty()) {
      throw new IOException(String.join("; ", unreadable));
    }
    TraceSurvey survey = TraceSurvey.of(recordings, unreadable);
    Path part = out.resolveSibling(out.getFileName() + ".part");
    try {
      try (TraceWriter writer = new TraceWriter(part, survey)) {
        for (RecordingEvents recording : recordings) {
          recording.forEach(event -> writer.write(recording, event));
        }
      }
      Path unused = Files.move(part, out, StandardCopyOption.REPLACE_EXISTING);
    } finally {
      Files.deleteIfExists(part);
    }
    return new Merged(survey.events(), survey.executors(), survey.warnings());
  }
}
