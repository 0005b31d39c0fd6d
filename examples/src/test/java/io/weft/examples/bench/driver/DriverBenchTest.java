package io.weft.examples.bench.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.examples.measure.Report;
import io.weft.examples.terminal.Progress;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Fake executors and a real driver, in a small number. The benchmark checks every address. */
class DriverBenchTest {
  private final Progress progress = new Progress(System.err, false);

  @TempDir private Path folder;

  @Test
  void executorsFindEachOtherAndTheDriverNeedsNoThreadForEach() throws Exception {
    DriverReport report = new DriverBench(List.of(3, 150), 1, false, progress).run();
    assertThat(report.rows()).extracting(DriverReport.Row::executors).containsExactly(3, 150);
    DriverReport.Row few = report.rows().get(0);
    DriverReport.Row many = report.rows().get(1);
    assertThat(many.threads()).isLessThan(few.threads() + 50);
    assertThat(many.answerBytes()).isLessThan(150 * 60);
    assertThat(report.passed()).isTrue();
    assertThat(report.text().toText()).contains("was not measured");
    assertThat(Report.read(report.write(folder).get(0), DriverReport.class)).isEqualTo(report);
  }

  @Test
  void oneExecutorIsTooFew() {
    assertThatThrownBy(() -> new DriverBench(List.of(1), 1, false, progress))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("at least two executors are needed, not 1");
  }
}
