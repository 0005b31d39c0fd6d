package io.weft.examples.bench.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.examples.measure.MeasureOptions;
import io.weft.examples.measure.Report;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class ShuffleBenchTest {
  @TempDir private Path folder;

  private static ShuffleBench.Subject subject(ShuffleReport.WorkloadResult result) {
    return new ShuffleBench.Subject(
        result.id(), result.title(), Optional.empty(), Optional.empty(), null, null, 0, 0);
  }

  private static ShuffleBench bench() {
    return new ShuffleBench(
        new ShuffleBench.Options(
            List.of(Workload.NUMERIC),
            List.of(),
            List.of("shm"),
            Map.of(),
            1,
            1,
            Optional.empty(),
            Duration.ofSeconds(1),
            1,
            1,
            Duration.ofHours(1),
            false),
        Progress.toErrors());
  }

  /** The first one fails, and the third one ends the command. */
  @Test
  void anInterruptionLeavesTheReportOfWhatWasMeasured() throws IOException {
    List<ShuffleReport.WorkloadResult> results = ShuffleReports.example().results();
    List<ShuffleBench.Subject> subjects = results.stream().map(ShuffleBenchTest::subject).toList();
    MeasureOptions options =
        CommandLine.populateCommand(new MeasureOptions(), "--out", folder.toString());
    ShuffleBench.MeasureOne one =
        (subject, share) ->
            switch (subjects.indexOf(subject)) {
              case 0 -> subject.result(8e9, "cancelled after 1 s", List.of());
              case 1 -> results.get(1);
              default -> throw new IOException("the cluster has ended");
            };
    assertThatThrownBy(
            () ->
                options.report(
                    ShuffleReport.class,
                    (progress, soFar) -> bench().measure(subjects, one, soFar)))
        .hasMessage("the cluster has ended");
    ShuffleReport left = Report.read(folder.resolve("shuffle.json"), ShuffleReport.class);
    assertThat(left.results())
        .extracting(ShuffleReport.WorkloadResult::id)
        .containsExactly("numeric", "strings");
    assertThat(left.left()).isEqualTo(results.size() - 2);
    assertThat(left.text().toText()).contains("Interrupted: 5 more were to follow.");
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.map(file -> file.getFileName().toString()))
          .containsExactlyInAnyOrder("shuffle.json", "shuffle.md", "shuffle.svg");
    }
  }
}
