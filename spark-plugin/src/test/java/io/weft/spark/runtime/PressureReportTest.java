package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.runtime.Messages.MemoryPressure;
import io.weft.spark.runtime.WeftExecutorPlugin.PressureReport;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class PressureReportTest {
  /** The driver decodes messages on any thread with the codec. */
  @Test
  void limitsItsReportsWhichTheDriverCanRead() {
    FakeContext context = new FakeContext(() -> null);
    PressureReport report = new PressureReport(context, System::nanoTime);
    report.run();
    report.run();
    assertThat(context.sent())
        .singleElement()
        .satisfies(
            message -> assertThat(MessageCodec.decode(message)).isEqualTo(new MemoryPressure("3")));
  }

  @Test
  void reportsMoreAndMoreRarelyWhileMemoryStaysFull() {
    AtomicLong nanos = new AtomicLong();
    FakeContext context = new FakeContext(() -> null);
    PressureReport report = new PressureReport(context, nanos::get);
    pressFor(3600, report, nanos);
    int inAnHour = context.sent().size();
    assertThat(inAnHour).isBetween(12, 20);
    nanos.addAndGet(Duration.ofMinutes(2).toNanos());
    pressFor(1, report, nanos);
    assertThat(context.sent()).as("after some time without pressure").hasSize(inAnHour + 1);
  }

  private static void pressFor(int seconds, PressureReport report, AtomicLong nanos) {
    for (int i = 0; i < seconds; i++) {
      report.run();
      nanos.addAndGet(Duration.ofSeconds(1).toNanos());
    }
  }
}
