package io.weft.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class ChildProcessTest {
  private static final int OUTPUT_BYTES = 300_000;

  private static ChildProcess.Outcome run(Duration timeout, String script) throws Exception {
    return ChildProcess.run(List.of("sh", "-c", script), timeout);
  }

  /** More output than a pipe holds, on both outputs. */
  @Test
  void childWithMuchOutputIsNotBlocked() throws Exception {
    String much = "head -c " + OUTPUT_BYTES + " /dev/zero | tr '\\0' x";
    ChildProcess.Outcome outcome = run(Duration.ofSeconds(60), much + " >&2; " + much);
    assertThat(outcome.isWell()).isTrue();
    assertThat(outcome.output()).hasSize(2 * OUTPUT_BYTES);
  }

  /** Its output stops, which would block a reader for a minute. */
  @Test
  void childThatHangsIsKilledAndItsOutputIsReported() throws Exception {
    ChildProcess.Outcome outcome = run(Duration.ofSeconds(3), "echo begun; exec sleep 60");
    assertThat(outcome.isWell()).isFalse();
    assertThat(outcome).hasToString("killed after a timeout, output:\nbegun\n");
  }

  @Test
  void childThatFailsReportsItsExitValue() throws Exception {
    assertThat(run(Duration.ofSeconds(60), "echo bad >&2; exit 3"))
        .hasToString("exit value 3, output:\nbad\n");
  }
}
