package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.tests.support.BareMachine;
import io.weft.tests.support.BuildTree;
import io.weft.tests.support.ChildProcess;
import io.weft.tests.support.Folders;
import io.weft.tests.support.SparkHome;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Rehearses what is carried to a machine with a GPU: sizes, time limits, results, and what goes
 * wrong there. The machine here has one simulated GPU and no Java, compilers and network; the first
 * libcuda in its search is broken.
 */
@Tag("slow")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
@Timeout(value = 60, unit = TimeUnit.MINUTES)
class GpuCarryTest {
  private static final long MEBIBYTE = 1 << 20;
  private static final Duration OF_A_COMMAND = Duration.ofSeconds(600);
  private static final int MAX_CALLS = 8;

  @TempDir static Path folder;

  private static BareMachine machine;

  /** The limit of the class is one of its tests only, and xz takes minutes on a busy machine. */
  @BeforeAll
  @Timeout(value = 45, unit = TimeUnit.MINUTES)
  static void packAndBoot() {
    Optional<String> whyNot = BareMachine.unavailable();
    assumeTrue(whyNot.isEmpty(), () -> whyNot.orElseThrow());
    String script = BuildTree.root().resolve("tests/gpu/carry").toString();
    SparkHome spark = SparkHome.assemble(folder.resolve("spark-home"), "default", List.of());
    String jars = spark.folder().resolve("jars").toString();
    Map<String, String> environment = Map.of("JAVA_HOME", System.getProperty("java.home"));
    try (ChildProcess carry =
        ChildProcess.start(
            "carry", List.of(script, "60m", "", "90", "", jars), folder, environment)) {
      carry.awaitSuccess(Duration.ofMinutes(40));
      assertThat(carry.output()).contains("1-weft: ", "2-spark: ", "No libcudf is added");
    }
    machine = BareMachine.open(folder.resolve("machine"), carried());
  }

  @AfterAll
  static void remove() {
    if (machine != null) {
      machine.close();
      Folders.delete(folder.resolve("machine"));
    }
  }

  private static Path carried() {
    return BuildTree.root().resolve("tests/gpu/target/carry");
  }

  /** Starts the script as on the machine, with a broken libcuda first in the search. */
  private static ChildProcess start(String... arguments) {
    List<String> command = new ArrayList<>(List.of("bash", "/carry/1-weft/run"));
    command.addAll(List.of(arguments));
    return machine.start(Map.of("LD_LIBRARY_PATH", BareMachine.BROKEN), command);
  }

  /** Runs suites in a folder of /tmp; returns the lines of the results. */
  private static List<JsonNode> results(String name, String suites) throws IOException {
    try (ChildProcess run = start("--out", "/tmp/" + name, "--again", "--suites", suites)) {
      run.awaitExit(OF_A_COMMAND);
      assertThat(machine.file("/tmp/" + name + "/results.jsonl")).as(run.output()).exists();
    }
    return lines(machine.file("/tmp/" + name));
  }

  private static List<JsonNode> lines(Path out) throws IOException {
    ObjectMapper json = new ObjectMapper();
    List<JsonNode> lines = new ArrayList<>();
    for (String line : Files.readAllLines(out.resolve("results.jsonl"))) {
      lines.add(json.readTree(line));
    }
    return lines;
  }

  /** The reasons of the lines of a suite with a state, as one text. */
  private static String reasons(List<JsonNode> lines, String suite, String state) {
    StringBuilder found = new StringBuilder();
    for (JsonNode line : lines) {
      if (line.get("suite").asText().equals(suite) && line.get("state").asText().equals(state)) {
        found.append(line.get("why")).append('\n');
      }
    }
    return found.toString();
  }

  /** The last state of each class. */
  private static Map<String, String> states(List<JsonNode> lines) {
    Map<String, String> states = new TreeMap<>();
    for (JsonNode line : lines) {
      if (line.has("class")) {
        String name = line.get("suite").asText() + ":" + line.get("class").asText();
        states.put(name, line.get("state").asText());
      }
    }
    return states;
  }

  @Test
  @Order(1)
  void eachFolderFitsOneTransfer() throws IOException {
    for (String name : List.of("1-weft", "2-spark")) {
      long bytes = 0;
      try (Stream<Path> files = Files.walk(carried().resolve(name))) {
        for (Path file : files.filter(Files::isRegularFile).toList()) {
          bytes += Files.size(file);
        }
      }
      assertThat(bytes).as(name).isBetween(10 * MEBIBYTE, 60 * MEBIBYTE);
    }
    assertThat(machine.run("id", "-u")).isEqualTo("4242");
    assertThat(machine.run("sh", "-c", "command -v java mvn gcc xz; true")).isEmpty();
  }

  /** The only other driver is one that the kernel module rejects. */
  @Test
  @Order(2)
  void withoutAGpuEachSuiteSaysSo() throws IOException {
    Path driver = machine.file(BareMachine.DRIVER);
    Path away = driver.resolveSibling("away");
    Files.move(driver, away);
    try {
      List<JsonNode> lines = results("none", "device,nccl");
      assertThat(reasons(lines, "machine", "no GPU")).contains("803");
      assertThat(reasons(lines, "device", "skipped")).contains("There is no GPU");
      assertThat(reasons(lines, "nccl", "skipped")).contains("There is no GPU");
    } finally {
      Files.move(away, driver);
    }
  }

  /** A fake nvidia-smi tells of the slice, the full memory and another process. */
  @Test
  @Order(3)
  void anOldNcclASliceAndAnotherProcessAreTold() throws IOException {
    List<Path> working = List.of(machine.file(BareMachine.NCCL), machine.file(BareMachine.NCCL_2));
    Path tool = machine.file("/usr/bin/nvidia-smi");
    for (Path nccl : working) {
      Files.move(nccl, nccl.resolveSibling("away"));
    }
    Files.writeString(
        tool,
        """
        #!/bin/sh
        case "$*" in
          *memory.free*) echo 900 ;;
          *compute-apps*) echo '77, 900 MiB' ;;
          *) echo '  MIG 1g.10gb Device 0: (UUID: MIG-1)' ;;
        esac
        """);
    assertThat(tool.toFile().setExecutable(true, false)).isTrue();
    try {
      List<JsonNode> lines = results("old", "nccl,device:CudaModuleTest");
      assertThat(reasons(lines, "nccl", "skipped")).contains("is too old");
      assertThat(reasons(lines, "machine", "note"))
          .contains("MIG slices", "77, 900 MiB", "Only 900 MiB of the GPU's memory are free");
      assertThat(states(lines)).containsOnly(Map.entry("device:CudaModuleTest", "passed"));
    } finally {
      for (Path nccl : working) {
        Files.move(nccl.resolveSibling("away"), nccl);
      }
      Files.delete(tool);
    }
  }

  @Test
  @Order(4)
  void aFullDiskLosesNoLines() throws IOException {
    Path out = machine.mounted(BareMachine.FULL);
    try (ChildProcess run =
        start("--out", BareMachine.FULL, "--again", "--suites", "device:CudaModuleTest")) {
      run.awaitLine("device CudaModuleTest starts", OF_A_COMMAND);
      Folders.fill(out.resolve("another user's file"));
      run.awaitSuccess(OF_A_COMMAND);
      assertThat(run.output()).contains("no weft-gpu-results.tar.gz: ");
    }
    assertThat(states(lines(out))).containsOnly(Map.entry("device:CudaModuleTest", "passed"));
  }

  /** The crash report is kept, and the next class runs. */
  @Test
  @Order(5)
  void aCrashEndsOneClassOnly() throws IOException {
    Path out = machine.file("/tmp/crash");
    String suites = "device:CudaLaneTest,device:CudaModuleTest";
    try (ChildProcess run = start("--out", "/tmp/crash", "--again", "--suites", suites)) {
      run.awaitLine("device CudaLaneTest starts|device CudaModuleTest starts", OF_A_COMMAND);
      ChildProcess.run("kill", "-SEGV", Long.toString(awaitJava(run.pid()).pid()));
      run.awaitExit(OF_A_COMMAND);
    }
    assertThat(reasons(lines(out), "device", "crashed")).contains("SIGSEGV");
    assertThat(states(lines(out)).values()).containsExactlyInAnyOrder("crashed", "passed");
    assertThat(Folders.tree(machine.file("/tmp/weft-gpu-4242/logs")))
        .anyMatch(each -> each.toString().contains("hs_err"));
  }

  private static ProcessHandle awaitJava(long script) {
    return Awaitility.await("the JVM of the class")
        .atMost(Duration.ofMinutes(1))
        .until(() -> java(script), Optional::isPresent)
        .orElseThrow();
  }

  private static Optional<ProcessHandle> java(long script) {
    return ProcessHandle.of(script)
        .orElseThrow()
        .descendants()
        .filter(each -> each.info().command().orElse("").endsWith("/bin/java"))
        .findFirst();
  }

  /** As in docs/gpu.md: calls follow each other until the last has nothing left to do. */
  @Test
  @Order(6)
  void allSuitesRunInAFewCalls() throws IOException {
    Path out = machine.file("/results");
    int started = 1;
    for (int call = 0; started > 0 && call < MAX_CALLS; call++) {
      try (ChildProcess run = start("--home", "/tmp/all", "--out", "/results")) {
        run.awaitExit(OF_A_COMMAND);
        started = run.lines(line -> line.endsWith(" starts")).size();
      }
    }
    List<JsonNode> lines = lines(out);
    Map<String, String> states = states(lines);
    assertThat(states.values()).containsOnly("passed", "skipped");
    assertThat(states)
        .containsEntry("exchange:TwoExecutors", "passed")
        .containsEntry("jcuda:JcudaBatchesTest", "passed");
    assertThat(states.keySet())
        .extracting(name -> name.substring(0, name.indexOf(':')))
        .contains("device", "nccl", "transfers", "rates", "exchange", "feed", "graphs", "rapids")
        .doesNotContain("cudf");
    assertThat(reasons(lines, "machine", "found"))
        .contains(BareMachine.DRIVER, "NCCL 2.30.7 in ", "Weft test double 0");
    assertThat(reasons(lines, "machine", "note")).contains("Several NCCL work, and ");
    assertThat(reasons(lines, "cudf", "skipped")).contains("bring the folders with cudf");
    assertThat(out.resolve("weft-gpu-results.tar.gz")).isNotEmptyFile();
  }
}
