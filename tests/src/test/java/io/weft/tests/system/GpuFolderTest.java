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
  private static final Duration TIMEOUT = Duration.ofMinutes(4);
  private static final String SUITES =
      "device:DeviceTiersTest,device:HostTableTest,nccl:NcclCommunicatorTest,transfers:OneRankTest,"
          + "transfers:GpuProcessesTest,exchange:DeviceAttemptsTest,rates";

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
            "--suites",
            SUITES,
            "--doubles",
            doubles.toString(),
            "--spark",
            SparkHome.shared().folder().resolve("jars").toString(),
            "--home",
            folder.resolve("home").toString(),
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
      run.awaitSuccess(TIMEOUT);
      assertThat(run.lines(line -> line.contains("\"class\"")))
          .as("classes in\n%s", run.output())
          .hasSize(11)
          .allMatch(line -> line.contains("\"state\": \"passed\""));
    }
    assertThat(Files.readAllLines(results.resolve("results.jsonl")))
        .anyMatch(line -> line.contains("needs 4 GPUs, there are 1"))
        .anyMatch(line -> line.contains("DeviceAttemptsTest"))
        .anyMatch(line -> line.contains("\"shareOfCopy\""));
    assertThat(Files.readString(folder.resolve("home/logs/rates.log")))
        .contains("goal: ")
        .contains("not judged on doubles");
    assertThat(results.resolve("weft-gpu-results.tar.gz")).isNotEmptyFile();
  }
}
