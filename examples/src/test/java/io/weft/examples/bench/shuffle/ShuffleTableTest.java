package io.weft.examples.bench.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ShuffleTableTest {
  @Test
  void showsMediansNoiseAndRatios() {
    List<String> lines = ShuffleReports.example().text().toText().lines().toList();
    assertThat(lines.get(0))
        .contains("Weft 0.1.0, Spark 4.1.3, Java 17.0.15", "8.00 GB/s", "after 3 to warm up");
    assertThat(lines).anyMatch(line -> line.startsWith("numeric columns from Parquet  "));
    assertThat(lines)
        .anyMatch(line -> line.matches("720 MB +Weft/shm +0.710 +0.639 – 0.852 +4.51× .*"));
    assertThat(lines)
        .contains(
            "TPC-H under Weft/shm, geometric means of 2 queries (the least): 1.25× (0.98×) faster, 1.25×"
                + " (0.98×) less CPU, 1.25× (0.98×) less process CPU.")
        .contains("Settings of all sides: {spark.x=1}", "All sides came to the same results.");
  }

  @Test
  void theTimeIsAlsoAMultipleOfOneCopyOfTheData() {
    ShuffleReport.WorkloadResult numeric = ShuffleReports.example().results().get(0);
    // Copying 720 MB at 8 GB/s takes 0.09 s.
    assertThat(numeric.timesCopy(numeric.spark()).orElseThrow()).isBetween(35.5, 35.6);
    assertThat(ShuffleReports.example().text().toText()).contains("35.6×");
  }

  @Test
  void differentResultsAreShown() {
    ShuffleReport.WorkloadResult fine = ShuffleReports.example().results().get(0);
    ShuffleReport.WorkloadResult wrong =
        new ShuffleReport.WorkloadResult(
            fine.id(), fine.title(), false, 1, 1, 1, "7 rows instead of 8", fine.sides());
    ShuffleReport example = ShuffleReports.example();
    ShuffleReport report =
        new ShuffleReport(
            "", "", "", "", "", 2, "", null, 8e9, 0, example.runs(), List.of(wrong), 0);
    assertThat(report.text().toText())
        .contains(
            "NOT EQUAL", "columns from Parquet: 7 rows instead of 8", "RESULTS ARE NOT EQUAL.");
  }

  @Test
  void aQueryThatFailedIsShownWithItsReasonOnly() {
    ShuffleReport.WorkloadResult failed =
        new ShuffleReport.WorkloadResult(
            "tpcds-q1", "TPC-DS Q1", true, 0, 0, 8e9, "cancelled after 1 s", List.of());
    ShuffleReport example = ShuffleReports.example();
    List<ShuffleReport.WorkloadResult> results = new ArrayList<>(example.results());
    results.add(0, failed);
    ShuffleReport report =
        new ShuffleReport("", "", "", "", "", 2, "", null, 8e9, 0, example.runs(), results, 0);
    assertThat(report.passed()).isFalse();
    assertThat(report.text().toText()).contains("TPC-DS Q1: cancelled after 1 s", "TPC-H under");
    assertThat(report.chart().orElseThrow()).contains("Spark's sort shuffle", "TPC-H Q18");
  }

  @Test
  void markdownIsOneTable() {
    String text = ShuffleReports.example().text().toMarkdown();
    assertThat(text)
        .contains("| workload | side | s | min – max |")
        .contains("| --- | --- | ---: |");
    assertThat(text.lines().filter(line -> line.startsWith("|"))).hasSize(2 + 5 * 3 + 2 * 2);
  }
}
