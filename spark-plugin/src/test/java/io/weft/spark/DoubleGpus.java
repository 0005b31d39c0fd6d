package io.weft.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Library;
import com.sun.jna.Native;
import io.weft.device.probe.ProbeOptions;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;

/**
 * A machine with GPUs, as Weft sees it: a root folder with what the NVIDIA driver shows in files,
 * and the doubles of libcuda and libnccl that gpu-collectives has for its tests.
 */
public final class DoubleGpus {
  private static final Path SOURCES =
      Path.of("..", "gpu-collectives", "src", "test", "native").toAbsolutePath();
  private static final String COMPILER = System.getenv().getOrDefault("CC", "gcc");
  private static final int TEXT_BYTES = 16_384;

  private DoubleGpus() {}

  /** What only tests call. */
  public interface Controls extends Library {
    int cudaDoubleViolations(byte[] text, int size);

    int cudaDoubleLive(byte[] text, int size);

    void cudaDoublePause(int paused);

    void cudaDoubleFailEvents(int events);
  }

  private static final class Built {
    private static Path root;
    private static final String WHY_NOT = tryBuild();

    private static String tryBuild() {
      try {
        root = build();
        return "";
      } catch (IOException e) {
        return "the doubles of libcuda and libnccl cannot be built: " + e.getMessage();
      }
    }

    private static Path build() throws IOException {
      Path made =
          Path.of("target", "gpu-root", "" + ProcessHandle.current().pid()).toAbsolutePath();
      Path driver = Files.createDirectories(made.resolve("proc/driver/nvidia"));
      Files.writeString(
          driver.resolve("version"),
          "NVRM version: NVIDIA UNIX Kernel Module  570.86.15  Of A Test\n");
      Path gpu = Files.createDirectories(driver.resolve("gpus/0000:01:00.0"));
      Files.writeString(gpu.resolve("information"), "Model: \t\t A double\n");
      Path libraries = Files.createDirectories(made.resolve("usr/lib/x86_64-linux-gnu"));
      compile("cuda_double.c", libraries.resolve("libcuda.so.1"), "libcuda.so.1", List.of());
      // The version is read in the name, as the library is not loaded for it.
      Path nccl = libraries.resolve("libnccl.so.2.28.3");
      compile(
          "nccl_double.c",
          nccl,
          "libnccl.so.2",
          List.of("-L" + libraries, "-l:libcuda.so.1", "-lrt", "-Wl,-rpath," + libraries));
      Files.createSymbolicLink(libraries.resolve("libnccl.so.2"), nccl);
      return made;
    }

    private static void compile(String source, Path library, String name, List<String> libraries)
        throws IOException {
      List<String> command = new ArrayList<>(List.of(COMPILER, "-std=gnu11", "-O1", "-g"));
      command.addAll(List.of("-fPIC", "-shared", "-Wl,-Bsymbolic", "-pthread"));
      command.addAll(List.of("-Wl,-soname," + name, "-o", library.toString()));
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
  public static void assume() {
    assumeTrue(Built.WHY_NOT.isEmpty(), () -> Built.WHY_NOT);
  }

  /** Starts an application whose only executor, in this JVM, has the first of the GPUs. */
  public static LocalSpark start(Map<String, String> settings) {
    assume();
    System.setProperty(ProbeOptions.ROOT_PROPERTY, Built.root.toString());
    try {
      LocalSpark spark = LocalSpark.start(withNccl(settings));
      return spark;
    } finally {
      System.clearProperty(ProbeOptions.ROOT_PROPERTY);
    }
  }

  /** A library that is named has the machine looked at anew, once for this application. */
  private static Map<String, String> withNccl(Map<String, String> settings) {
    var all = new java.util.HashMap<>(settings);
    all.put("spark.weft.nccl.library", library("libnccl.so.2").toString());
    return all;
  }

  /** Where the double of a library lies: a process loads one of libcuda, so all tests share it. */
  public static Path library(String name) {
    assertThat(Built.WHY_NOT).isEmpty();
    return Built.root.resolve("usr/lib/x86_64-linux-gnu").resolve(name);
  }

  /** That of libcuda, which the application has loaded. */
  public static Controls controls() {
    return Native.load(library("libcuda.so.1").toString(), Controls.class);
  }

  /**
   * No rule was broken since this was asked last, and nothing is left behind when all has ended.
   */
  public static void assertClean() {
    assertThat(violations()).as("rules that were broken").isEmpty();
    Awaitility.await("the end of what was left behind")
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(live()).as("what was left behind").isEmpty());
    assertThat(violations()).as("rules that were broken at the end").isEmpty();
  }

  /** The rules that were broken since this was asked last. */
  public static String violations() {
    byte[] text = new byte[TEXT_BYTES];
    controls().cudaDoubleViolations(text, text.length);
    return Native.toString(text);
  }

  /** The handles that have not been given back. */
  public static String live() {
    byte[] text = new byte[TEXT_BYTES];
    controls().cudaDoubleLive(text, text.length);
    return Native.toString(text);
  }
}
