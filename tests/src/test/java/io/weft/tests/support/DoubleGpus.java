package io.weft.tests.support;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Native;
import io.weft.device.probe.ProbeOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A machine with GPUs for the executors of a cluster: a root folder with what the NVIDIA driver
 * shows in files, the doubles of libcuda and libnccl that gpu-collectives has for its tests, and a
 * script that gives each of Spark's workers a GPU of its own.
 */
public final class DoubleGpus {
  private static final String COMPILER = System.getenv().getOrDefault("CC", "gcc");
  private static final String LIBRARIES = "usr/lib/x86_64-linux-gnu";

  private DoubleGpus() {}

  /** Skips the test where there is no compiler for them. */
  public static void assume() {
    try {
      assumeTrue(
          run(List.of(COMPILER, "--version")).isEmpty(), () -> COMPILER + " does not work here");
    } catch (IOException e) {
      assumeTrue(false, "the doubles of libcuda and libnccl cannot be built: " + e.getMessage());
    }
  }

  /**
   * Settings of an application whose executors see such a machine, each with a GPU of its own that
   * Spark gives it.
   *
   * @param folder of the test, for the machine
   */
  public static Map<String, String> settings(Path folder) {
    Path root = folder.resolve("gpu-root");
    Map<String, String> settings = new LinkedHashMap<>();
    try {
      build(root);
      settings.put("spark.worker.resource.gpu.discoveryScript", discovery(folder).toString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    settings.put("spark.jars", BuildTree.weftJar() + "," + ApplicationJar.get() + "," + jna());
    String options = String.join(" ", Jvm.SHORT_LIVED);
    settings.put(
        "spark.executor.extraJavaOptions",
        options + " -D" + ProbeOptions.ROOT_PROPERTY + "=" + root);
    settings.put("spark.worker.resource.gpu.amount", "1");
    settings.put("spark.executor.resource.gpu.amount", "1");
    settings.put("spark.task.resource.gpu.amount", "1");
    return settings;
  }

  /** Where the double of libcuda of a machine lies. */
  public static Path libcuda(Path folder) {
    return folder.resolve("gpu-root").resolve(LIBRARIES).resolve("libcuda.so.1");
  }

  private static void build(Path root) throws IOException {
    Path driver = Files.createDirectories(root.resolve("proc/driver/nvidia"));
    Files.writeString(
        driver.resolve("version"),
        "NVRM version: NVIDIA UNIX Kernel Module  570.86.15  Of A Test\n");
    Path gpu = Files.createDirectories(driver.resolve("gpus/0000:01:00.0"));
    Files.writeString(gpu.resolve("information"), "Model: \t\t A double\n");
    Path libraries = Files.createDirectories(root.resolve(LIBRARIES));
    compile("cuda_double.c", libraries.resolve("libcuda.so.1"), "libcuda.so.1", List.of());
    // The version is read in the name, as the library is not loaded for it.
    Path nccl = libraries.resolve("libnccl.so.2.28.3");
    compile(
        "nccl_double.c",
        nccl,
        "libnccl.so.2",
        List.of("-L" + libraries, "-l:libcuda.so.1", "-lrt", "-Wl,-rpath," + libraries));
    Files.createSymbolicLink(libraries.resolve("libnccl.so.2"), nccl);
  }

  private static void compile(String source, Path library, String name, List<String> libraries)
      throws IOException {
    List<String> command = new ArrayList<>(List.of(COMPILER, "-std=gnu11", "-O1", "-g"));
    command.addAll(List.of("-fPIC", "-shared", "-Wl,-Bsymbolic", "-pthread"));
    command.addAll(List.of("-Wl,-soname," + name, "-o", library.toString()));
    command.add(BuildTree.root().resolve("gpu-collectives/src/test/native/" + source).toString());
    command.addAll(libraries);
    String error = run(command);
    if (!error.isEmpty()) {
      throw new AssertionError(COMPILER + " does not take " + source + ":\n" + error);
    }
  }

  /** What it says when it fails; empty when it does not. */
  private static String run(List<String> command) throws IOException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    try {
      return process.waitFor(60, TimeUnit.SECONDS) && process.exitValue() == 0
          ? ""
          : "it failed: " + output;
    } catch (InterruptedException e) {
      throw new IOException("interrupted", e);
    }
  }

  /** Who makes the n-th folder first has GPU n. */
  private static Path discovery(Path folder) throws IOException {
    Path taken = Files.createDirectories(folder.resolve("gpus-taken"));
    Path script = folder.resolve("discover-gpus");
    Files.writeString(
        script,
        """
        #!/bin/sh
        n=0
        while ! mkdir "%s/$n" 2>/dev/null; do n=$((n + 1)); done
        echo "{\\"name\\": \\"gpu\\", \\"addresses\\": [\\"$n\\"]}"
        """
            .formatted(taken));
    return Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwx------"));
  }

  private static Path jna() {
    try {
      return Path.of(Native.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (URISyntaxException e) {
      throw new IllegalStateException(e);
    }
  }
}
