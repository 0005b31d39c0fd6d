package io.weft.examples.bench.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.examples.measure.Spread;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
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
            new RowResult(
                "stream",
                "a title",
                256_000_000,
                List.of(
                    new SideFigures("Weft/tcp", Spread.of(0.5, 0.4, 0.6), Spread.of(0.7)),
                    new SideFigures("plain sockets", Spread.of(0.25), Spread.of(0.3))),
                Goal.atLeast("at least 60 %", 50, "%", 60)),
            new RowResult(
                "abort",
                "another title",
                0,
                List.of(new SideFigures("killed", Spread.of(0.01), Spread.of(0))),
                Goal.atMost("within 4 s", 0.01, "s", 4))),
        List.of(LatencyFigures.of("Weft/shm", Histograms.decode(Histograms.encode(nanos)))));
  }

  @Test
  void theTableShowsGoalsAndWhetherTheyWereMet() throws IOException {
    String text = new TransferTable(report()).toText();
    assertThat(text)
        .contains("512 MB", "1.02 GB", "0.400 – 0.600", "at least 60 %", "50.0 %", "NOT MET")
        .contains("1 GOALS WERE NOT MET.", "with a load of 1.3 before", "a title");
    assertThat(new TransferTable(report()).toMarkdown()).contains("| within 4 s |", "| met |");
  }

  @Test
  void percentilesOutliveTheWayBetweenProcesses() throws IOException {
    LatencyFigures figures = report().latencies().get(0);
    assertThat(figures.count()).isEqualTo(1000);
    assertThat(figures.percentiles()).hasSameSizeAs(LatencyFigures.PERCENTILES);
    assertThat(figures.percentiles().get(0)).isBetween(499.0, 502.0);
    assertThat(figures.percentiles().get(4)).isBetween(1000.0, 1001.0);
    assertThat(new TransferTable(report()).toText()).contains("99.9 %", "longest");
  }

  @Test
  void theReportsOfAnEarlierRunAreWrittenAnew() throws IOException {
    List<Path> files = TransferFiles.write(report(), folder.resolve("new"));
    assertThat(files).hasSize(2).allSatisfy(file -> assertThat(file).isNotEmptyFile());
    assertThat(TransferFiles.read(files.get(0))).isEqualTo(report());
    JsonNode json = new ObjectMapper().readTree(files.get(0).toFile());
    assertThat(json.path("rows").path(0).path("sides").path(0).path("seconds").path("values"))
        .hasSize(3);
  }

  @Test
  void sidesTakeTurnsAndWarmUpsDoNotCount() throws Exception {
    List<String> order = new ArrayList<>();
    List<SideFigures> figures =
        new InTurn(1, 2)
            .measure(
                List.of(
                    new Contestant("a", () -> run(order, "a")),
                    new Contestant("b", () -> run(order, "b"))));
    assertThat(order).containsExactly("b", "a", "a", "b", "b", "a");
    assertThat(figures).extracting(SideFigures::side).containsExactly("a", "b");
    assertThat(figures.get(0).seconds().values()).containsExactly(3.0, 6.0);
  }

  private static Cost run(List<String> order, String side) {
    order.add(side);
    return new Cost(order.size(), 1);
  }

  @Test
  void whatCannotBeMeasuredIsRefused() {
    assertThatThrownBy(() -> Row.of("fast")).hasMessageContaining("stream, small, latency");
    assertThatThrownBy(() -> new TransferBenchOptions(Set.of(), 0, 1))
        .hasMessageContaining("at least one run");
    assertThatThrownBy(() -> new TransferBenchOptions(Set.of(), 1, 0))
        .hasMessageContaining("factor");
  }
}
