package io.weft.examples.bench.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.examples.measure.Report;
import io.weft.examples.measure.Rounds;
import io.weft.examples.measure.Spread;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TransferReportsTest {
  @TempDir private Path folder;

  private static TransferReport report() throws IOException {
    Histogram nanos = Histograms.create();
    for (int i = 1; i <= 1000; i++) {
      Histograms.record(nanos, i * 1000L);
    }
    return new TransferReport(
        "2026-01-02T03:04:05Z",
        "0.1.0",
        "17.0.1",
        "Linux 6",
        2,
        3,
        1.25,
        List.of(
            new TransferReport.RowResult(
                "stream",
                "a title",
                256_000_000,
                List.of(
                    new Rounds.SideFigures("Weft/tcp", Spread.of(0.5, 0.4, 0.6), Spread.of(0.7)),
                    new Rounds.SideFigures("plain sockets", Spread.of(0.25), Spread.of(0.3))),
                TransferReport.Goal.atLeast("at least 60 %", 50, "%", 60)),
            new TransferReport.RowResult(
                "abort",
                "another title",
                0,
                List.of(new Rounds.SideFigures("killed", Spread.of(0.01), Spread.of(0))),
                TransferReport.Goal.atMost("within 4 s", 0.01, "s", 4))),
        List.of(
            TransferReport.LatencyFigures.of(
                "Weft/shm", Histograms.decode(Histograms.encode(nanos)))));
  }

  @Test
  void theTableShowsGoalsAndResults() throws IOException {
    String text = report().text().toText();
    assertThat(text)
        .contains("512 MB", "1.02 GB", "0.400 – 0.600", "at least 60 %", "50.0 %", "NOT MET")
        .contains("1 GOALS WERE NOT MET.", "with a load of 1.3 before", "a title");
    assertThat(report().text().toMarkdown()).contains("| within 4 s |", "| met |");
  }

  @Test
  void percentilesSurviveTheTransferBetweenProcesses() throws IOException {
    TransferReport.LatencyFigures figures = report().latencies().get(0);
    assertThat(figures.count()).isEqualTo(1000);
    assertThat(figures.percentiles()).hasSameSizeAs(TransferReport.LatencyFigures.PERCENTILES);
    assertThat(figures.percentiles().get(0)).isBetween(499.0, 502.0);
    assertThat(figures.percentiles().get(4)).isBetween(1000.0, 1001.0);
    assertThat(report().text().toText()).contains("99.9 %", "longest");
  }

  @Test
  void anEarlierReportIsReadBack() throws IOException {
    List<Path> files = report().write(folder.resolve("new"));
    assertThat(files).hasSize(2).allSatisfy(file -> assertThat(file).isNotEmptyFile());
    assertThat(Report.read(files.get(0), TransferReport.class)).isEqualTo(report());
    JsonNode json = new ObjectMapper().readTree(files.get(0).toFile());
    assertThat(json.path("rows").path(0).path("sides").path(0).path("seconds").path("values"))
        .hasSize(3);
  }

  @Test
  void wrongOptionsAreRefused() {
    assertThatThrownBy(() -> Row.of("fast")).hasMessageContaining("stream, small, latency");
    assertThatThrownBy(() -> new TransferBench.Options(Set.of(), 0, 1))
        .hasMessageContaining("at least one run");
    assertThatThrownBy(() -> new TransferBench.Options(Set.of(), 1, 0))
        .hasMessageContaining("factor");
  }
}
