package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.runtime.Messages.MemoryPressure;
import io.weft.spark.runtime.WeftExecutorPlugin.PressureReport;
import org.junit.jupiter.api.Test;

class PressureReportTest {
  /** The driver decodes messages on any thread with the codec. */
  @Test
  void limitsItsReportsWhichTheDriverCanRead() {
    FakeContext context = new FakeContext(() -> null);
    PressureReport report = new PressureReport(context);
    report.run();
    report.run();
    assertThat(context.sent())
        .singleElement()
        .satisfies(
            message -> assertThat(MessageCodec.decode(message)).isEqualTo(new MemoryPressure("3")));
  }
}
