package io.weft.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class WeftTest {
  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();

  private int run(String... args) {
    return Weft.commandLine()
        .setOut(new PrintWriter(out, true))
        .setErr(new PrintWriter(err, true))
        .execute(args);
  }

  @Test
  void helpNamesTheCommands() {
    assertThat(run("--help")).isZero();
    assertThat(out.toString()).contains("demo", "bench", "doctor", "train");
  }

  @Test
  void everyOptionOfEveryCommandIsExplained() {
    assertThat(run("demo", "--help")).isZero();
    assertThat(run("bench", "shuffle", "--help")).isZero();
    assertThat(run("bench", "collectives", "--help")).isZero();
    assertThat(run("bench", "transfer", "--help")).isZero();
    assertThat(run("bench", "feed", "--help")).isZero();
    assertThat(run("train", "--help")).isZero();
    assertThat(run("doctor", "--help")).isZero();
    assertThat(out.toString())
        .contains(
            "--scale",
            "--queries",
            "--quick",
            "--profile",
            "--sizes",
            "--ranks",
            "--folder",
            "--tensors",
            "--epochs");
  }

  @Test
  void wrongArgumentsEndWithTwoAndAReason() {
    assertThat(run("demo", "--scale", "big")).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(err.toString()).contains("--scale", "big");
  }

  @Test
  void impossibleValuesEndWithOneAndAReasonWithoutAStackTrace() {
    assertThat(run("demo", "--queries", "6")).isEqualTo(1);
    assertThat(run("demo", "--scale", "0")).isEqualTo(1);
    assertThat(run("bench", "shuffle", "--workloads", "numbers")).isEqualTo(1);
    assertThat(err.toString())
        .contains("no query 6", "the scale must be more than 0", "no workload numbers")
        .doesNotContain("\tat ");
  }
}
