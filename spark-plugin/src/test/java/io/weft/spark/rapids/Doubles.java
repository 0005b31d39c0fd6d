package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Library;
import com.sun.jna.Native;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The doubles of libcuda and libnccl that gpu-collectives has for its tests, built here. */
final class Doubles {
  /** Names the folder to a child process, which builds nothing. */
  private static final String FOLDER_PROPERTY = "weft.test.rapidsDoubles";

  private static final Path SOURCES =
      Path.of("..", "gpu-collectives", "src", "test", "native").toAbsolutePath();
  private static final String COMPILER = System.getenv().getOrDefault("CC", "gcc");
  private static final int TEXT_BYTES = 16_384;

  private Doubles() {}

  /** What only tests call. */
  interface Controls extends Library {
    int cudaDoubleViolations(byte[] text, int size);

    int cudaDoubleLive(byte[] text, int size);
  }

  private static final class Built {
    private static Path folder;
    private static final String WHY_NOT = tryBuild();

    private static String tryBuild() {
      String given = System.getProperty(FOLDER_PROPERTY);
      try {
        folder = given == null ? build() : Path.of(given);
        return "";
      } catch (IOException e) {
        return "the doubles of libcuda and libnccl cannot be built: " + e.getMessage();
      }
    }

    private static Path build() throws IOException {
      Path made = Path.of("target", "rapids-doubles", "" + ProcessHandle.current().pid());
      Path target = Files.createDirectories(made).toAbsolutePath();
      compile("cuda_double.c", target.resolve("libcuda.so.1"), List.of());
      compile(
          "nccl_double.c",
          target.resolve("libnccl.so.2"),
          List.of("-L" + target, "-l:libcuda.so.1", "-lrt", "-Wl,-rpath," + target));
      return target;
    }

    private static void compile(String source, Path library, List<String> libraries)
        throws IOException {
      List<String> command = new ArrayList<>(List.of(COMPILER, "-std=gnu11", "-O1", "-g"));
      command.addAll(List.of("-fPIC", "-shared", "-pthread"));
      command.addAll(List.of("-Wl,-soname," + library.getFileName(), "-o", library.toString()));
      command.add(SOURCES.resolve(source).toString());
      command.addAll(libraries);
      Process gcc = new ProcessBuilder(command).redirectErrorStream(true).start();
      String output = new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      try {
        if (!gcc.waitFor(60, TimeUnit.SECONDS) || gcc.exitValue() != 0) {
          throw new AssertionError(COMPILER + " does not take " + source + ":\n" + output);
        }
      } catch (InterruptedException e) {
        throw new IOException("interrupted", e);
      }
    }
  }

  /** Skips the test, with the reason, where they cannot be built. */
  static void assume() {
    assumeTrue(Built.WHY_NOT.isEmpty(), () -> Built.WHY_NOT);
  }

  /** Has a child process use the same. */
  static String property() {
    assertThat(Built.WHY_NOT).isEmpty();
    return "-D" + FOLDER_PROPERTY + "=" + Built.folder;
  }

  /** This machine, as a process sees it whose library path leads to them. */
  static ProbeOptions options() {
    assertThat(Built.WHY_NOT).isEmpty();
    return ProbeOptions.defaults()
        .withEnvironment(Map.of("LD_LIBRARY_PATH", Built.folder.toString()));
  }

  static CudaLibrary cuda() {
    return CudaLibrary.load(options());
  }

  /** No rule was broken since this was asked last, and nothing is left behind. */
  static void assertClean() {
    String library = Built.folder.resolve("libcuda.so.1").toString();
    Controls controls = Native.load(library, Controls.class);
    byte[] text = new byte[TEXT_BYTES];
    controls.cudaDoubleViolations(text, text.length);
    assertThat(Native.toString(text)).as("rules that were broken").isEmpty();
    controls.cudaDoubleLive(text, text.length);
    assertThat(Native.toString(text)).as("what was left behind").isEmpty();
  }
}
