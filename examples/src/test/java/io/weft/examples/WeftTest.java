package io.weft.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
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
    assertThat(out.toString()).contains("demo", "bench", "doctor", "ranks", "train");
  }

  @Test
  void everyOptionOfEveryCommandIsExplained() {
    assertThat(run("demo", "--help")).isZero();
    assertThat(run("bench", "shuffle", "--help")).isZero();
    assertThat(run("bench", "collectives", "--help")).isZero();
    assertThat(run("bench", "transfer", "--help")).isZero();
    assertThat(run("bench", "feed", "--help")).isZero();
    assertThat(run("bench", "driver", "--help")).isZero();
    assertThat(run("bench", "survive", "--help")).isZero();
    assertThat(run("train", "--help")).isZero();
    assertThat(run("doctor", "--help")).isZero();
    assertThat(run("ranks", "--help")).isZero();
    assertThat(run("gpu-train", "--help")).isZero();
    assertThat(run("trace", "--help")).isZero();
    assertThat(run("replay", "--help")).isZero();
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
            "--executors",
            "--epochs",
            "--cells",
            "--batch-rows",
            "recordings of executors",
            "--conf");
  }

  @Test
  void wrongArgumentsEndWithTwoAndAReason() {
    assertThat(run("demo", "--scale", "big")).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(err.toString()).contains("--scale", "big");
  }

  /** The check runs before a cluster starts, and before the model library is loaded. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--scale|0|--scale has to be more than 0, not 0.0",
        "--scale|NaN|--scale has to be more than 0, not NaN",
        "--hidden|64,0|--hidden needs layers of at least one unit each, not [64, 0]",
        "--epochs|0|--epochs has to be at least 1, not 0",
        "--batch|-1|--batch needs at least one row, not -1",
        "--rate|-0.1|--rate has to be more than 0, not -0.1",
        "--runs|-1|--runs has to be 0 or more, not -1",
        "--data|pom.xml|--data has to name a folder, but pom.xml is a file",
      })
  void trainNamesTheWrongOption(String option, String value, String message) {
    String out = "target/never-made";
    assertThat(run("train", "--out", out, option, value)).isEqualTo(1);
    assertThat(err.toString()).contains(message).doesNotContain("\tat ");
    assertThat(Path.of(out)).doesNotExist();
  }

  @ParameterizedTest
  @CsvSource({
    "train",
    "bench feed",
    "bench shuffle",
    "bench transfer",
    "bench collectives",
    "bench driver",
    "bench survive"
  })
  void anUnwritableReportFolderIsAnErrorBeforeTheMeasurement(String command) {
    List<String> args = new ArrayList<>(List.of(command.split(" ", -1)));
    args.addAll(List.of("--out", "pom.xml"));
    assertThat(run(args.toArray(String[]::new))).isEqualTo(1);
    assertThat(err.toString()).contains("reports cannot go to").doesNotContain("\tat ");
  }

  /** Before anything is written or started, and before copies are deleted. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "demo --transport pigeon|no transport pigeon; it must be one of auto, shm, tcp",
        "bench shuffle --transports shm,x|no transport x; it must be",
        "bench shuffle --warm-ups 0|at least one run is needed, not 0",
        "bench shuffle --profile x|no transport x; it must be",
        "bench shuffle --conf sql.x=1|sql.x is no setting of Spark: it has to begin with spark.",
        "bench shuffle --conf spark.master=x|spark.master cannot be set: the comparison chooses it",
        "bench shuffle --conf spark.weft.rdd.stream=true|spark.weft.rdd.streams",
        "bench shuffle --conf spark.weft.rdd.streams=maybe|spark.weft.rdd.streams",
        "bench collectives --sizes -1|not a size such as 8, 32K or 64M: -1",
        "bench collectives --sizes 0|not a size such as 8, 32K or 64M: 0",
        "bench collectives --sizes 9999999999T|not a size such as 8, 32K or 64M: 9999999999T",
        "bench collectives --ranks 2,1|collectives need 2 ranks or more, not 1",
        "bench collectives --operations ragged-all-to-all --in-place|ragged-all-to-all needs two"
            + " buffers; leave out --in-place",
        "ranks --cells -1|--cells has to be at least 1, not -1",
        "ranks --steps 0|--steps has to be at least 1, not 0",
        "ranks --rows 0|--rows has to be at least 1, not 0",
        "doctor --sweep --survive-age -5|--survive-age has to be at least 1 minute, not -5",
        "doctor --sweep --survive-path here|must be empty",
        "bench shuffle --out target/reports --from pom.xml|pom.xml is no report of this command:"
            + " Unexpected character",
        "doctor --survive-path /copies|--survive-path is only for --sweep",
        "doctor --nccl /missing|--nccl has to name a file, but there is no /missing",
      })
  void aWrongValueEndsTheCommandAtItsStart(String arguments, String message) {
    assertThat(run(arguments.split(" ", -1))).isEqualTo(1);
    assertThat(err.toString()).contains(message).doesNotContain("\tat ");
    assertThat(out.toString()).isEmpty();
  }

  @Test
  void trainWithoutTheModelLibrarySaysHowToGetIt() {
    assertThat(run("train", "--out", "target/weft-train")).isEqualTo(1);
    assertThat(err.toString()).contains("bin/weft train builds one");
  }

  @Test
  void trainSuggestsTheIntendedOption() {
    assertThat(run("train", "--epoch", "3")).isEqualTo(CommandLine.ExitCode.USAGE);
    assertThat(err.toString()).contains("--epochs");
  }

  @Test
  void impossibleValuesEndWithOneAndAReasonWithoutAStackTrace() {
    assertThat(run("demo", "--queries", "6")).isEqualTo(1);
    assertThat(run("demo", "--scale", "0")).isEqualTo(1);
    assertThat(run("bench", "shuffle", "--workloads", "numbers")).isEqualTo(1);
    assertThat(run("demo", "--data", "pom.xml")).isEqualTo(1);
    assertThat(run("bench", "shuffle", "--workloads", "tpcds", "--queries", "14")).isEqualTo(1);
    assertThat(run("bench", "shuffle", "--workloads", "tpcds,tpch", "--queries", "3")).isEqualTo(1);
    assertThat(run("bench", "shuffle", "--timeout", "0")).isEqualTo(1);
    assertThat(err.toString())
        .contains("--data has to name a folder")
        .contains("no query 6", "the scale must be more than 0", "no workload numbers")
        .contains("no query 14 of TPC-DS; there are 1, 2", "14a, 14b")
        .contains("--queries names queries of one set", "--timeout has to be 1 to 800 s")
        .doesNotContain("\tat ");
  }
}
