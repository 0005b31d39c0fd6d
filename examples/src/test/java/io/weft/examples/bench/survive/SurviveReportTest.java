package io.weft.examples.bench.survive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.weft.examples.bench.survive.SurviveReport.Death;
import io.weft.examples.bench.survive.SurviveReport.SideResult;
import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.apache.spark.Success$;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.scheduler.TaskLocality;
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
            side(SurviveSide.SPARK, "[1]", death(Spread.of(60), 0.5, 20, 2, true)),
            side(SurviveSide.ADOPT, sum, death(Spread.of(-0.04, 5), Double.NaN, 1, 1, equal))));
  }

  private static Death death(Spread lost, double noticed, int repeated, int late, boolean equal) {
    return new Death(50, lost, Spread.of(noticed), Spread.of(4), repeated, late, equal);
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
        .contains("Spark 121.0 12.0 30.0", "Weft, adoption 121.0 12.0 30.0")
        .contains("Spark 50 % 60.0 1.50 0.50 4.0 20", "Weft, adoption 50 % 2.5 1.02 - 4.0 1")
        .anyMatch(
            line ->
                line.contains(
                        "of 3 undisturbed runs, and of 1 with each death, of a job of 120 s with"
                            + " 1,000 rows")
                    && line.endsWith("equal."))
        .last()
        .asString()
        .startsWith("3 more runs do not count");
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
  void anEarlierReportWithoutTimesOfTheDeathIsShown(@TempDir Path folder) throws IOException {
    ObjectMapper mapper = new ObjectMapper();
    JsonNode json = mapper.readTree(report("[1]", true).write(folder).get(0).toFile());
    for (JsonNode side : json.get("sides")) {
      for (JsonNode death : side.get("deaths")) {
        JsonNode unused = ((ObjectNode) death).remove(List.of("noticed", "replaced"));
      }
    }
    Path earlier = Files.writeString(folder.resolve("earlier.json"), json.toString());
    SurviveReport read = Report.read(earlier, SurviveReport.class);
    assertThat(read.text().toText().lines().map(line -> line.strip().replaceAll(" +", " ")))
        .contains("Spark 50 % 60.0 1.50 - - 20");
    assertThat(read.chart()).isPresent();
  }

  /** The end of a task is heard late, so the executor may die after the job. */
  @Test
  void aDeathAfterTheLastTaskIsNotOneOfTheJob() throws Exception {
    SurviveJob.TaskCount early = new SurviveJob.TaskCount(1, SurviveReportTest::sleeper);
    early.onTaskEnd(end(System.currentTimeMillis()));
    early.onExecutorRemoved(
        new SparkListenerExecutorRemoved(System.currentTimeMillis() + 2000, "0", "lost"));
    assertThat(early.kill().inTime()).isFalse();
    assertThat(early.kill().replaced()).isNaN();
    early.onTaskEnd(end(System.currentTimeMillis() + 5000));
    assertThat(early.kill().inTime()).isTrue();
    assertThat(early.kill().noticed()).isBetween(1.0, 2.1);
    assertThat(early.kill().lastTask()).isBetween(4.0, 5.1);
  }

  @Test
  void aJobThatEndsWithoutTheDeathIsAnError() throws Exception {
    SurviveJob.TaskCount never = new SurviveJob.TaskCount(2, SurviveReportTest::sleeper);
    never.onTaskEnd(end(1));
    assertThatThrownBy(never::kill)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("no executor died after task 2 of a job that ended 1 tasks");
    SurviveJob.TaskCount nothing = new SurviveJob.TaskCount(1, Optional::empty);
    nothing.onTaskEnd(end(1));
    assertThatThrownBy(nothing::kill).hasMessageContaining("no executor's process was found");
    assertThat(new SurviveJob.TaskCount(0, Optional::empty).kill()).isNull();
  }

  private static Optional<ProcessHandle> sleeper() {
    try {
      return Optional.of(new ProcessBuilder("sleep", "60").start().toHandle());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static SparkListenerTaskEnd end(long finished) {
    TaskInfo task =
        new TaskInfo(0, 0, 0, 0, 0, "0", "127.0.0.1", TaskLocality.PROCESS_LOCAL(), false);
    task.finishTime_$eq(finished);
    return new SparkListenerTaskEnd(0, 0, "", Success$.MODULE$, task, null, null);
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
