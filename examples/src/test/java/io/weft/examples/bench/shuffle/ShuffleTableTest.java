package io.weft.examples.bench.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class ShuffleTableTest {
  @Test
  void showsMediansNoiseAndRatios() {
    List<String> lines = ShuffleReports.example().text().toText().lines().toList();
    assertThat(lines.get(0)).contains("Weft 0.1.0, Spark 4.1.3, Java 17.0.15", "8.00 GB/s");
    assertThat(lines).anyMatch(line -> line.startsWith("numeric columns from Parquet  "));
    assertThat(lines)
        .anyMatch(line -> line.matches("720 MB +Weft/shm +0.710 +0.639 – 0.852 +4.51× .*"));
    assertThat(lines)
        .contains("TPC-H under Weft/shm: geometric mean 1.25× faster, the least 0.98×.")
        .contains("All sides came to the same results.");
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
            fine.id(), fine.title(), false, 1, 1, 1, false, fine.sides());
    ShuffleReport example = ShuffleReports.example();
    ShuffleReport report =
        new ShuffleReport("", "", "", "", "", 2, "", 8e9, example.runs(), List.of(wrong));
    assertThat(report.text().toText()).contains("NOT EQUAL", "RESULTS ARE NOT EQUAL.");
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
