package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.Traffic;
import io.weft.shuffle.peer.TrafficReport;
import io.weft.shuffle.peer.TrafficReport.Figure;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Report;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** How often an executor reports to the driver. */
class StatusReporterTest {
  private static final Duration PERIOD = Duration.ofSeconds(2);

  private final FakeContext context = new FakeContext(() -> null);
  private final AtomicLong nanos = new AtomicLong();
  private final Traffic traffic = new Traffic();
  private long value;

  private void report(StatusReporter reporter) {
    reporter.report();
    nanos.addAndGet(PERIOD.toNanos());
  }

  private ExecutorReport now() {
    return new ExecutorReport("3", "here", Map.of("a", value));
  }

  @Test
  void nothingIsSentWhileNothingChanges() {
    try (StatusReporter reporter = new StatusReporter(context, this::now, traffic, nanos::get)) {
      for (int i = 0; i < 1000; i++) {
        report(reporter);
      }
    }
    assertThat(context.sent()).hasSize(1);
  }

  @Test
  void aChangeIsSentWhenItIsOver() {
    try (StatusReporter reporter = new StatusReporter(context, this::now, traffic, nanos::get)) {
      report(reporter);
      value = 7;
      report(reporter);
      report(reporter);
    }
    assertThat(context.sent())
        .hasSize(2)
        .last()
        .satisfies(
            message ->
                assertThat(MessageCodec.decode(message))
                    .isEqualTo(new Report(now(), TrafficReport.NONE, false)));
  }

  @Test
  void changesWithoutEndAreSentEveryTenSeconds() {
    try (StatusReporter reporter = new StatusReporter(context, this::now, traffic, nanos::get)) {
      for (int i = 0; i < 1000; i++) {
        value++;
        report(reporter);
      }
    }
    assertThat(context.sent()).hasSize((int) (1000 * PERIOD.toSeconds() / 10));
  }

  /** A report is bounded; what is left over goes with the next ones. */
  @Test
  void figuresOfShufflesAreSentOnce() {
    int shuffles = 2 * TrafficReport.MAX_ENTRIES + 1;
    try (StatusReporter reporter = new StatusReporter(context, this::now, traffic, nanos::get)) {
      report(reporter);
      for (int i = 0; i < shuffles; i++) {
        traffic.add(i, Figure.GPU, 1);
      }
      for (int i = 0; i < 10; i++) {
        report(reporter);
      }
    }
    List<Report> sent =
        context.sent().stream().map(message -> (Report) MessageCodec.decode(message)).toList();
    assertThat(sent).hasSize(4);
    assertThat(sent.stream().flatMap(report -> report.traffic().shuffles().stream()))
        .hasSize(shuffles)
        .doesNotHaveDuplicates();
  }

  /** The driver receives the reports of all executors on one thread. */
  @Test
  void theLargestReportIsSmall() {
    for (int i = 0; i < TrafficReport.MAX_ENTRIES; i++) {
      for (Figure figure : Figure.values()) {
        traffic.add(i, figure, 1L << 40);
      }
      traffic.read("" + i, "a-host-of-this-cluster-" + i, 1L << 40);
    }
    assertThat(MessageCodec.encode(new Report(now(), traffic.take(), false)))
        .hasSizeLessThan(20 << 10);
  }
}
