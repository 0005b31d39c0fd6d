package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.device.ChildProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The committed PTX is the output of nvcc for the sources; ptxas takes it for each GPU. */
class CompiledKernelsTest {
  private static final Path SOURCES = Path.of("src", "main", "cuda");
  private static final Path COMPILED =
      Path.of("src", "main", "resources", "io", "weft", "device", "cuda");
  private static final Duration TIMEOUT = Duration.ofMinutes(2);
  private static final Pattern RELEASE = Pattern.compile("release ([0-9.]+),");
  private static final Pattern MADE_WITH = Pattern.compile("with nvcc ([0-9.]+):");

  /** What each kernel takes of an SM: registers of a thread, bytes of shared memory of a block. */
  private static final Path USED = SOURCES.resolve("used.txt");

  private static final Pattern USE =
      Pattern.compile(
          "entry function '(\\w+)' for.*?(\\d+) bytes spill stores, (\\d+) bytes spill loads"
              + ".*?Used (\\d+) registers(?:[^\\n]*?(\\d+) bytes smem)?",
          Pattern.DOTALL);

  /** Of all GPUs from compute capability 8.0 on, for one block. */
  private static final int SHARED_BYTES = 48 << 10;

  private static final int REGISTERS = 64 << 10;
  private static final Pattern THREADS =
      Pattern.compile("\\.entry (\\w+)\\([^)]*\\)\\s+\\.maxntid (\\d+)");

  @TempDir Path folder;

  /** The output of a tool; skips the test if the tool is missing. */
  private static String output(String... command) {
    try {
      ChildProcess.Outcome outcome = ChildProcess.run(List.of(command), TIMEOUT);
      assertThat(outcome.isWell()).as(() -> "" + outcome).isTrue();
      return outcome.output();
    } catch (IOException e) {
      assumeTrue(false, () -> command[0] + " cannot run: " + e.getMessage());
      throw new AssertionError(e);
    }
  }

  private static String first(Pattern pattern, String text) {
    Matcher matcher = pattern.matcher(text);
    assertThat(matcher.find()).as(() -> pattern + " in " + text).isTrue();
    return matcher.group(1);
  }

  private static List<Path> compiled() throws IOException {
    try (var files = Files.list(COMPILED)) {
      return files.filter(file -> file.toString().endsWith(".ptx")).sorted().toList();
    }
  }

  /** Another release of nvcc writes other PTX for the same source. */
  @Test
  void committedIsWhatTheSourcesGive() throws IOException {
    String release = first(RELEASE, output("nvcc", "--version"));
    for (Path ptx : compiled()) {
      String made = first(MADE_WITH, Files.readString(ptx));
      assumeTrue(made.equals(release), () -> ptx + " is of nvcc " + made + ", here is " + release);
    }
    output(SOURCES.resolve("compile").toString(), folder.toString());
    assertThat(folder)
        .isDirectoryNotContaining(file -> !Files.exists(COMPILED.resolve(file.getFileName())));
    for (Path ptx : compiled()) {
      assertThat(folder.resolve(ptx.getFileName()))
          .as("src/main/cuda/compile compiles it again")
          .hasSameTextualContentAs(ptx);
    }
  }

  /** From Turing to Blackwell, as far as this ptxas supports them. */
  @ParameterizedTest
  @ValueSource(strings = {"sm_75", "sm_80", "sm_90", "sm_100"})
  void everyGpuTakesThem(String gpu) throws IOException {
    String known = output("ptxas", "--help");
    assumeTrue(known.contains("'" + gpu + "'"), () -> "ptxas does not know " + gpu);
    for (Path ptx : compiled()) {
      output("ptxas", "-arch=" + gpu, "-o", folder.resolve("cubin").toString(), ptx.toString());
    }
  }

  /**
   * No kernel spills registers, and at least two blocks fit on an SM. The figures are recorded, and
   * compared if ptxas is of the same release; -Dweft.writeDocs=true records them again.
   */
  @Test
  void kernelsLeaveRoomForOthers() throws IOException {
    String release = first(RELEASE, output("ptxas", "--version"));
    StringBuilder table = new StringBuilder("registers/shared bytes, ptxas " + release + "\n");
    for (String gpu : List.of("sm_80", "sm_90", "sm_100")) {
      assumeTrue(output("ptxas", "--help").contains("'" + gpu + "'"), () -> "no " + gpu);
      for (Path ptx : compiled()) {
        appendUse(table, gpu, ptx);
      }
    }
    if (Boolean.getBoolean("weft.writeDocs")) {
      Files.writeString(USED, table);
    }
    String recorded = Files.readString(USED);
    assumeTrue(recorded.contains("ptxas " + release + "\n"), () -> "other ptxas: " + recorded);
    assertThat(table.toString()).isEqualTo(recorded);
  }

  private void appendUse(StringBuilder table, String gpu, Path ptx) throws IOException {
    Map<String, Integer> threads =
        THREADS
            .matcher(Files.readString(ptx))
            .results()
            .collect(Collectors.toMap(m -> m.group(1), m -> Integer.parseInt(m.group(2))));
    String cubin = folder.resolve("cubin").toString();
    String said = output("ptxas", "-v", "-arch=" + gpu, "-o", cubin, ptx.toString());
    Matcher use = USE.matcher(said);
    int kernels = 0;
    for (; use.find(); kernels++) {
      int registers = Integer.parseInt(use.group(4));
      int shared = use.group(5) == null ? 0 : Integer.parseInt(use.group(5));
      assertThat(List.of(use.group(2), use.group(3))).as(use.group(1)).containsOnly("0");
      assertThat(threads).containsKey(use.group(1));
      assertThat(2 * threads.get(use.group(1)) * registers)
          .as(use.group(1))
          .isLessThanOrEqualTo(REGISTERS);
      assertThat(2 * shared).as(use.group(1)).isLessThanOrEqualTo(SHARED_BYTES);
      table.append("%s %s %d/%d%n".formatted(gpu, use.group(1), registers, shared));
    }
    assertThat(kernels).as(said).isPositive();
  }
}
