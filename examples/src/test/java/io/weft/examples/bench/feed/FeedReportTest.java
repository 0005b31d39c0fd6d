package io.weft.examples.bench.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.examples.measure.Report;
import java.io.IOException;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FeedReportTest {
  private static final List<Double> SCANS = List.of(1.0, 1.0);

  private static Map<FeedSide, List<FeedRead.Result>> results(long lastSum) {
    Map<FeedSide, List<FeedRead.Result>> results = new EnumMap<>(FeedSide.class);
    results.put(FeedSide.FEED, List.of(new FeedRead.Result(2, 3, 100, 7, 4_000, 0)));
    results.put(FeedSide.PARQUET, List.of(new FeedRead.Result(12, 3, 100, 7, 8_000, 500_000)));
    results.put(
        FeedSide.PLAIN_PARQUET, List.of(new FeedRead.Result(8, 3, 100, lastSum, 8_000, 600_000)));
    return results;
  }

  @Test
  void everySideIsARowAndIsComparedWithTheFeed() {
    List<String> lines =
        new FeedReport(SCANS, results(7))
            .text()
            .toText()
            .lines()
            .map(line -> line.strip().replaceAll(" +", " "))
            .toList();
    assertThat(lines)
        .contains(
            "Weft feed 2.00 2.00 – 2.00 3.00 100 0 B 4.00 kB",
            "Spark + Parquet 12.0 12.0 – 12.0 3.00 100 500 kB 8.00 kB",
            "Spark + Parquet, uncompressed 8.00 8.00 – 8.00 3.00 100 600 kB 8.00 kB",
            "The feed is 6.00× and 4.00× as fast as by Parquet and by Parquet uncompressed; beyond"
                + " the scan of the input, which takes 1.00 s and is in all, 11.0× and 7.00×. The"
                + " goal, 3.00× as fast as by Parquet, was met. All elements were equal.");
  }

  @Test
  void aMissedGoalIsShown() {
    Map<FeedSide, List<FeedRead.Result>> slow = results(7);
    slow.put(FeedSide.PARQUET, List.of(new FeedRead.Result(5.9, 3, 100, 7, 8_000, 500_000)));
    assertThat(new FeedReport(SCANS, slow).text().toText())
        .contains("3.00× as fast as by Parquet, was NOT MET.");
  }

  @Test
  void differentElementsAreShown() {
    FeedReport report = new FeedReport(SCANS, results(8));
    assertThat(report.passed()).isFalse();
    assertThat(report.text().toMarkdown()).contains("All elements were NOT EQUAL.");
  }

  @Test
  void anEarlierReportIsReadBack(@TempDir Path folder) throws IOException {
    FeedReport report = new FeedReport(SCANS, results(7));
    List<Path> files = report.write(folder);
    assertThat(files)
        .extracting(file -> file.getFileName().toString())
        .containsExactly("feed.json", "feed.md");
    assertThat(Report.read(files.get(0), FeedReport.class)).isEqualTo(report);
  }
}
