package io.weft.spark.gpu.cudf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.rapids.cudf.NativeDepsLoader;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.RmmAllocationMode;
import com.sun.jna.Library;
import com.sun.jna.Native;
import io.weft.spark.DoubleGpus;
import io.weft.testgpus.TestMachine;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The test double of cudf's native library, on top of the double of libcuda. gcc builds it once for
 * each test process, into the folder from which cudf loads its libraries.
 */
final class CudfDouble {
  /** cudf reads it when its first class is loaded, so the build sets it. */
  private static final String FOLDER_PROPERTY = "ai.rapids.cudf.lib-native-dir";

  private static final Path SOURCE = Path.of("src", "test", "native", "cudf_double.c");
  private static final Path DOUBLES = Path.of("..", "gpu-collectives", "src", "test", "native");
  private static final String COMPILER = System.getenv().getOrDefault("CC", "gcc");
  private static final int TEXT_BYTES = 4096;

  private CudfDouble() {}

  /** Functions that only tests call. */
  public interface Controls extends Library {
    void cudfDoubleLive(byte[] text, int size);

    int cudfDoubleResting();

    void cudfDoubleLarge(int now);
  }

  private static final class Built {
    private static final String WHY_NOT = tryBuild();

    private static String tryBuild() {
      Path headers = Path.of(System.getProperty("java.home"), "include");
      if (!Files.exists(headers.resolve("jni.h"))) {
        return "the double of cudf cannot be built: there is no " + headers.resolve("jni.h");
      }
      try {
        build(headers);
        return "";
      } catch (IOException e) {
        return "the double of cudf cannot be built: " + e.getMessage();
      }
    }

    private static void build(Path headers) throws IOException {
      Files.createDirectories(folder());
      Path cuda = DoubleGpus.library("libcuda.so.1").getParent();
      compile("libcudf.so", List.of("-x", "c", "/dev/null"));
      compile(
          "libcudfjni.so",
          List.of(
              "-I" + headers,
              "-I" + headers.resolve("linux"),
              "-I" + DOUBLES,
              SOURCE.toString(),
              "-L" + cuda,
              "-l:libcuda.so.1",
              "-Wl,-rpath," + cuda));
    }

    /**
     * Moves the library into place atomically: another test process may have loaded the existing
     * one.
     */
    private static void compile(String name, List<String> arguments) throws IOException {
      Path made = folder().resolve(name + "." + ProcessHandle.current().pid());
      List<String> command = new ArrayList<>(List.of(COMPILER, "-std=gnu11", "-O1", "-g"));
      command.addAll(List.of("-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"));
      command.addAll(List.of("-Wl,-Bsymbolic", "-o", made.toString()));
      command.addAll(arguments);
      Process gcc = new ProcessBuilder(command).redirectErrorStream(true).start();
      String output = new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      try {
        if (!gcc.waitFor(60, TimeUnit.SECONDS) || gcc.exitValue() != 0) {
          throw new AssertionError(COMPILER + " does not take " + name + ":\n" + output);
        }
      } catch (InterruptedException e) {
        throw new IOException("interrupted", e);
      }
      Files.move(made, folder().resolve(name), StandardCopyOption.REPLACE_EXISTING);
    }
  }

  private static Path folder() {
    return Path.of(System.getProperty(FOLDER_PROPERTY));
  }

  /**
   * Skips the test, with the reason, if the library cannot be built; otherwise loads it. With real
   * GPUs it is cudf's own library.
   */
  static void assume() {
    DoubleGpus.assume();
    if (TestMachine.isReal()) {
      assumeTrue(NativeDepsLoader.libraryLoaded(), "cudf's library cannot be loaded");
      return;
    }
    assumeTrue(Built.WHY_NOT.isEmpty(), () -> Built.WHY_NOT);
    assertThat(NativeDepsLoader.libraryLoaded()).as("cudf's library, which is a double").isTrue();
  }

  /** Initialises cudf's memory, as a program would. */
  static void initialise() {
    Rmm.initialize(RmmAllocationMode.CUDA_DEFAULT, null, 0);
  }

  /** Number of threads that wait for their stream within cudf. */
  static int resting() {
    return controls().cudfDoubleResting();
  }

  /** Sets whether strings are made with offsets of 8 bytes. */
  static void makeLarge(boolean now) {
    controls().cudfDoubleLarge(now ? 1 : 0);
  }

  /** Views, columns and tables that were not closed. */
  static String live() {
    byte[] text = new byte[TEXT_BYTES];
    controls().cudfDoubleLive(text, text.length);
    return Native.toString(text);
  }

  private static Controls controls() {
    if (TestMachine.isReal()) {
      return TestMachine.controls("", Controls.class);
    }
    return Native.load(folder().resolve("libcudfjni.so").toString(), Controls.class);
  }
}
