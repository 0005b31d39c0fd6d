package io.weft.examples.bench.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.collectives.DataType;
import io.weft.collectives.OperationKind;
import io.weft.collectives.ReduceOp;
import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Path;
import java.util.List;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.xml.sax.InputSource;

class CollectivesReportsTest {
  @TempDir private Path folder;

  private static CollectivesReport report(long errors) {
    return new CollectivesReport(
        "2026-01-02T03:04:05Z",
        "0.1.0",
        "17.0.1",
        "4.1.4",
        "Linux 6",
        2,
        List.of(
            new CollectivesReport.Gang(2, 6e9, true), new CollectivesReport.Gang(4, 3e9, false)),
        8e9,
        3,
        List.of(
            result(1 << 20, 2, 0.0002, 0.0004, errors),
            result(64 << 20, 2, 0.016, 0.032, 0),
            result(1 << 20, 4, 0.0005, 0.0015, 0)));
  }

  private static CollectivesReport.CaseResult result(
      long bytes, int nranks, double ours, double theirs, long errors) {
    CollectiveCase test =
        CollectiveCase.ofSize(
            OperationKind.ALL_REDUCE, DataType.FLOAT32, ReduceOp.SUM, bytes, nranks, false);
    return new CollectivesReport.CaseResult(
        test,
        List.of(
            new CollectivesReport.CaseFigures(
                "Weft", Spread.of(ours, ours / 2, ours * 2), Spread.of(ours * 2), errors, "staged"),
            new CollectivesReport.CaseFigures(
                "OpenMPI", Spread.of(theirs), Spread.of(theirs * 2), 0, "")));
  }

  @Test
  void theTableShowsBandwidthsAndTheComparison() {
    String text = report(0).text().toText();
    assertThat(text)
        .contains("OpenMPI 4.1.4", "1 MiB", "262144", "200.0", "100.0 – 400.0", "5.24", "2.00×")
        .contains("64 MiB", "0.52", "staged", "All results were right.")
        .contains("2 ranks on a processor each, 4 ranks that move freely", "3.00×")
        .contains("/s beside 1 more,", "/s beside 3 more")
        .containsPattern("4 +all-reduce +1 MiB");
    assertThat(report(3).text().toMarkdown()).contains("3 ELEMENTS WERE WRONG.");
  }

  @Test
  void jsonHoldsEveryRunAndDerivedValues() throws IOException {
    JsonNode json = new ObjectMapper().readTree(report(0).toJson());
    JsonNode result = json.path("results").path(0);
    assertThat(result.path("test").path("bytes").asLong()).isEqualTo(1 << 20);
    JsonNode weft = result.path("sides").path(0);
    assertThat(weft.path("seconds").path("values").size()).isEqualTo(3);
    assertThat(weft.path("timesFaster").asDouble()).isEqualTo(2);
    assertThat(weft.path("busbw").asDouble()).isEqualTo((1 << 20) / 0.0002);
    assertThat(result.path("sides").path(1).has("timesFaster")).isFalse();
  }

  @Test
  void theChartIsWellFormedAndNamesAllSides() throws Exception {
    String svg = new CollectivesChart(report(0)).toSvg();
    assertThat(
            DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new InputSource(new StringReader(svg)))
                .getDocumentElement()
                .getTagName())
        .isEqualTo("svg");
    assertThat(svg)
        .contains(
            ">Weft<", ">OpenMPI<", ">all-reduce, 2 ranks<", ">all-reduce, 4 ranks<", ">64 MiB<");
  }

  @Test
  void anEarlierReportIsReadBack() throws IOException {
    Path json = report(0).write(folder).get(0);
    CollectivesReport read = Report.read(json, CollectivesReport.class);
    assertThat(read).isEqualTo(report(0));
    assertThat(new CollectivesChart(read).toSvg())
        .isEqualTo(new CollectivesChart(report(0)).toSvg());
  }

  @Test
  void allFilesAreWritten() throws IOException {
    assertThat(report(0).write(folder.resolve("new")))
        .hasSize(3)
        .allSatisfy(file -> assertThat(file).isNotEmptyFile());
  }
}
