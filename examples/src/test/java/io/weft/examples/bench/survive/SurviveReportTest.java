package io.weft.examples.bench.survive;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.examples.bench.survive.SurviveReport.Death;
import io.weft.examples.bench.survive.SurviveReport.SideResult;
import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SurviveReportTest {
  private static SurviveReport report(String sum, boolean equal) {
    return new SurviveReport(
        120,
        1000,
        3,
        1,
        List.of(
            side(SurviveSide.SPARK, "[1]", new Death(50, Spread.of(60), 20, true)),
            side(SurviveSide.ADOPT, sum, new Death(50, Spread.of(-0.04, 5), 1, equal))));
  }

  private static SideResult side(SurviveSide side, String sum, Death death) {
    return new SideResult(side, Spread.of(121), Spread.of(12), Spread.of(30), sum, List.of(death));
  }

  @Test
  void everySideIsARow() {
    List<String> lines =
        report("[1]", true)
            .text()
            .toText()
            .lines()
            .map(line -> line.strip().replaceAll(" +", " "))
            .toList();
    assertThat(lines)
        .contains("Spark 121.0 12.0 30.0 60.0 20", "Weft, adoption 121.0 12.0 30.0 2.5 1")
        .anyMatch(line -> line.contains("lost after 50 %, s"))
        .last()
        .asString()
        .contains(
            "of 3 undisturbed runs, and of 1 with each death, of a job of 120 s with 1,000 rows")
        .endsWith("equal.");
  }

  @Test
  void otherRowsAreShown() {
    assertThat(report("[1]", true).passed()).isTrue();
    assertThat(report("[2]", true).passed()).isFalse();
    assertThat(report("[1]", false).passed()).isFalse();
    assertThat(report("[2]", true).text().toText()).contains("NOT EQUAL");
  }

  @Test
  void allFormsAreWrittenAndJsonIsReadBack(@TempDir Path folder) throws IOException {
    SurviveReport report = report("[1]", true);
    List<Path> files = report.write(folder);
    assertThat(files)
        .extracting(file -> file.getFileName().toString())
        .containsExactly("survive.json", "survive.md", "survive.svg");
    assertThat(files.get(2)).content().contains("Weft, adoption").contains("60.0 s · 20 tasks");
    assertThat(Report.read(files.get(0), SurviveReport.class)).isEqualTo(report);
  }

  @Test
  void theJobTakesItsTimeAndItsRowsDoNotDependOnIt() throws Exception {
    try (SparkSession session =
        SparkSession.builder()
            .master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()) {
      SurviveJob.Result fast = new SurviveJob(0, 3200, 0).run(session);
      SurviveJob.Result paced = new SurviveJob(2, 3200, 0).run(session);
      assertThat(paced.sum()).isEqualTo(fast.sum()).startsWith("[3200,");
      assertThat(paced.tasks()).isEqualTo(fast.tasks()).isEqualTo(49);
      assertThat(paced.seconds()).isGreaterThan(1.5);
      assertThat(paced.cpuSeconds()).isPositive();
    }
  }
}
