package io.weft.device.library;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class ChildProcessTest {
  private static final int OUTPUT_BYTES = 300_000;

  private static ChildProcess.Outcome run(Duration patience, String script) throws Exception {
    return ChildProcess.run(List.of("sh", "-c", script), patience);
  }

  /** More than a pipe holds, on both outputs. */
  @Test
  void childThatPrintsMuchIsNotHeldUp() throws Exception {
    String much = "head -c " + OUTPUT_BYTES + " /dev/zero | tr '\\0' x";
    ChildProcess.Outcome outcome = run(Duration.ofSeconds(60), much + " >&2; " + much);
    assertThat(outcome.isWell()).isTrue();
    assertThat(outcome.output()).hasSize(2 * OUTPUT_BYTES);
  }

  /** It prints nothing and would hold a reader for a minute. */
  @Test
  void childThatHangsIsKilledAndSaysWhatItPrinted() throws Exception {
    ChildProcess.Outcome outcome = run(Duration.ofSeconds(3), "echo begun; exec sleep 60");
    assertThat(outcome.isWell()).isFalse();
    assertThat(outcome).hasToString("killed as too slow, output:\nbegun\n");
  }

  @Test
  void childThatFailsSaysHow() throws Exception {
    assertThat(run(Duration.ofSeconds(60), "echo bad >&2; exit 3"))
        .hasToString("exit value 3, output:\nbad\n");
  }
}
