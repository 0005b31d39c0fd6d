package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Report;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** How often an executor reports to the driver. */
class StatusReporterTest {
  private static final Duration PERIOD = Duration.ofSeconds(2);

  private final FakeContext context = new FakeContext(() -> null);
  private final AtomicLong nanos = new AtomicLong();
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
    try (StatusReporter reporter = new StatusReporter(context, this::now, nanos::get)) {
      for (int i = 0; i < 1000; i++) {
        report(reporter);
      }
    }
    assertThat(context.sent()).hasSize(1);
  }

  @Test
  void aChangeIsSentWhenItIsOver() {
    try (StatusReporter reporter = new StatusReporter(context, this::now, nanos::get)) {
      report(reporter);
      value = 7;
      report(reporter);
      report(reporter);
    }
    assertThat(context.sent())
        .hasSize(2)
        .last()
        .satisfies(
            message -> assertThat(MessageCodec.decode(message)).isEqualTo(new Report(now())));
  }

  @Test
  void changesWithoutEndAreSentEveryTenSeconds() {
    try (StatusReporter reporter = new StatusReporter(context, this::now, nanos::get)) {
      for (int i = 0; i < 1000; i++) {
        value++;
        report(reporter);
      }
    }
    assertThat(context.sent()).hasSize((int) (1000 * PERIOD.toSeconds() / 10));
  }
}
