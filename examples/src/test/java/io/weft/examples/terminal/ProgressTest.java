package io.weft.examples.terminal;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import org.junit.jupiter.api.Test;

class ProgressTest {
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

  private String written(boolean terminal) {
    Progress progress = new Progress(new PrintStream(bytes, true, UTF_8), terminal);
    progress.step("first step");
    progress.detail("a detail");
    progress.say("to stay");
    return bytes.toString(UTF_8);
  }

  @Test
  void aTerminalGetsOneLineThatIsOverwritten() {
    String text = written(true);
    assertThat(text).contains("first step", "\r\u001b[2K[0:00] a detail");
    assertThat(text).endsWith("\r\u001b[2Kto stay" + System.lineSeparator());
    assertThat(text.lines().filter(line -> line.contains("step"))).hasSize(1);
  }

  @Test
  void aLogGetsPlainLinesAndNoDetails() {
    assertThat(written(false).lines()).containsExactly("[0:00] first step", "to stay");
  }
}
