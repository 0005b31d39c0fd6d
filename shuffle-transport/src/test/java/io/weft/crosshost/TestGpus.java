package io.weft.crosshost;

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

/**
 * The GPUs that tests use: those of the doubles of libcuda and libnccl that gpu-collectives has for
 * its tests, built here once more; or the machine's own, where {@code -Dweft.test.gpus=machine}
 * says so, as {@code tests/gpu/run} does.
 */
public final class TestGpus {
  /** Names the folder to a child process, which builds nothing. */
  private static final String FOLDER_PROPERTY = "weft.test.gpuDoubles";

  private static final String SHARED_PROPERTY = "weft.test.sharedGpu";

  private static final boolean MACHINE =
      System.getProperty("weft.test.gpus", "doubles").equals("machine");
  private static final Path SOURCES =
      Path.of("..", "gpu-collectives", "src", "test", "native").toAbsolutePath();
  private static final String COMPILER = System.getenv().getOrDefault("CC", "gcc");
  private static final int TEXT_BYTES = 16_384;

  private TestGpus() {}

  /** What only tests call. */
  public interface Controls extends Library {
    int cudaDoubleViolations(byte[] text, int size);

    int cudaDoubleLive(byte[] text, int size);

    void cudaDoublePause(int paused);

    void cudaDoubleStall(int stall);

    int cudaDoubleStalled();

    int cudaDoubleHostCopies();
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
      Path target =
          Files.createDirectories(
                  Path.of("target", "gpu-doubles", "" + ProcessHandle.current().pid()))
              .toAbsolutePath();
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
      command.addAll(List.of("-fPIC", "-shared", "-Wl,-Bsymbolic", "-pthread"));
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

  /** Skips the test, with the reason, where there are none. */
  public static void assume() {
    assumeTrue(MACHINE || Built.WHY_NOT.isEmpty(), () -> Built.WHY_NOT);
  }

  /** Skips the test where there are fewer. */
  public static void assume(int gpus) {
    assume();
    assumeTrue(count() >= gpus, () -> "needs " + gpus + " GPUs, there are " + count());
  }

  /** Skips a test of what only the doubles do. */
  public static void assumeDoubles() {
    assumeTrue(!MACHINE, "only for the doubles");
    assume();
  }

  static boolean areDoubles() {
    return !MACHINE;
  }

  /** How many there are: eight of the doubles. */
  static int count() {
    return cuda().gpus().size();
  }

  /** The number of the GPU of an executor; executors share where there are more of them. */
  static int ordinal(int executor) {
    return Boolean.getBoolean(SHARED_PROPERTY) ? 0 : executor % count();
  }

  /** Has the executors of child processes share one GPU. */
  static String sharedProperty() {
    return "-D" + SHARED_PROPERTY + "=true";
  }

  /** Copies between the host and GPUs since this was asked last; 0 where there are no doubles. */
  static int hostCopies() {
    return !MACHINE && isForThisProcess() ? controls().cudaDoubleHostCopies() : 0;
  }

  /** Whether this process was started to use GPUs. */
  static boolean isForThisProcess() {
    return MACHINE || System.getProperty(FOLDER_PROPERTY) != null;
  }

  /** Has a child process use the same. */
  static String property() {
    return MACHINE ? "-Dweft.test.gpus=machine" : "-D" + FOLDER_PROPERTY + "=" + folder();
  }

  private static Path folder() {
    assertThat(Built.WHY_NOT).isEmpty();
    return Built.folder;
  }

  /** This machine; with the doubles, as a process sees it whose library path leads to them. */
  public static ProbeOptions options() {
    return MACHINE
        ? ProbeOptions.defaults()
        : ProbeOptions.defaults().withEnvironment(Map.of("LD_LIBRARY_PATH", folder().toString()));
  }

  /** The driver of this process. */
  public static CudaLibrary cuda() {
    return CudaLibrary.load(options());
  }

  /** Of doubles, what only tests call. */
  public static Controls controls() {
    return Native.load(folder().resolve("libcuda.so.1").toString(), Controls.class);
  }

  /** Of doubles: no rule was broken since this was asked last, and nothing is left behind. */
  public static void assertClean() {
    if (MACHINE) {
      return;
    }
    Controls controls = controls();
    byte[] text = new byte[TEXT_BYTES];
    controls.cudaDoubleViolations(text, text.length);
    assertThat(Native.toString(text)).as("rules that were broken").isEmpty();
    controls.cudaDoubleLive(text, text.length);
    assertThat(Native.toString(text)).as("what was left behind").isEmpty();
  }
}
