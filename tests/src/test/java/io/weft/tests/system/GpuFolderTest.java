package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.testgpus.DoubleBuild;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.ChildProcess;
import io.weft.tests.support.SparkHome;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Checks that the folder for a machine with a GPU is complete and that its script succeeds: on the
 * double of one GPU, with one suite of each kind.
 */
class GpuFolderTest {
  private static final Duration PATIENCE = Duration.ofMinutes(4);

  @TempDir Path folder;

  @BeforeEach
  void needsDoubles() {
    String whyNot = DoubleBuild.whyNot();
    assumeTrue(whyNot.isEmpty(), whyNot);
  }

  @Test
  void itsScriptGoesThroughOnDoubles() throws IOException {
    Path doubles = folder.resolve("doubles");
    DoubleBuild.into(doubles, "-DWEFT_DOUBLE_DEVICES=1");
    Path script = BuildTree.root().resolve("tests/gpu/target/weft-gpu/run");
    Path results = folder.resolve("results");
    List<String> command =
        List.of(
            "bash",
            script.toString(),
            "--quick",
            "--doubles",
            doubles.toString(),
            "--spark",
            SparkHome.shared().folder().resolve("jars").toString(),
            "--out",
            results.toString());
    // The JVMs end before an optimising compiler pays off.
    Map<String, String> environment =
        Map.of(
            "JAVA_HOME",
            System.getProperty("java.home"),
            "JAVA_TOOL_OPTIONS",
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
    try (ChildProcess run = ChildProcess.start("run", command, folder, environment)) {
      run.awaitSuccess(PATIENCE);
      assertThat(run.lines(line -> line.contains(" passed ")))
          .as("suites in\n%s", run.output())
          .hasSize(6)
          .allMatch(line -> line.matches(".* [1-9]\\d* passed +0 failed .* exit 0"));
      assertThat(run.lines(line -> line.startsWith("goal: ")))
          .as("goals in\n%s", run.output())
          .hasSize(6)
          .allMatch(line -> line.endsWith("not judged on doubles"));
    }
    assertThat(Files.readString(results.resolve("results.txt")))
        .contains("    skipped: needs 4 GPUs, there are 1");
    assertThat(Files.readString(results.resolve("results.json")))
        .contains("\"suite\": \"DeviceAttemptsTest\"")
        .contains("\"shareOfCopy\"")
        .doesNotContain(": null\n");
  }
}
