package io.weft.testgpus;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Builds the doubles of libcuda and libnccl with gcc, under the names of the real libraries. */
public final class DoubleBuild {
  public static final String CUDA = "libcuda.so.1";
  public static final String NCCL = "libnccl.so.2";

  private static final Path SOURCES =
      Path.of(System.getProperty("weft.rootFolder", ".."))
          .resolve("gpu-collectives/src/test/native")
          .toAbsolutePath();
  private static final String COMPILER = System.getenv().getOrDefault("CC", "gcc");
  private static final int TIMEOUT_SECONDS = 120;

  private DoubleBuild() {}

  /** The reason why they cannot be built; empty if they can. */
  public static String whyNot() {
    try {
      run(List.of(COMPILER, "--version"));
      return "";
    } catch (IOException e) {
      return "the doubles of libcuda and libnccl cannot be built: " + e.getMessage();
    }
  }

  /**
   * Builds the current version of both.
   *
   * @param flags for libcuda, such as -DWEFT_DOUBLE_DEVICES=1 for one GPU instead of eight
   * @throws IOException when there is no compiler
   * @throws AssertionError when the compiler rejects the sources
   */
  public static void into(Path folder, String... flags) throws IOException {
    compile(
        List.of(flags), "cuda_double.c", Files.createDirectories(folder).resolve(CUDA), List.of());
    nccl(folder, folder, List.of());
  }

  /** Builds an older libnccl in a folder below, beside the same libcuda. */
  public static void olderNccl(Path folder, String version, String... flags) throws IOException {
    Path below = Files.createDirectories(folder.resolve(version));
    Files.createSymbolicLink(below.resolve(CUDA), Path.of("..", CUDA));
    nccl(folder, below, List.of(flags));
  }

  /** Builds another libcuda in a folder below. */
  public static void olderCuda(Path folder, String version, String... flags) throws IOException {
    Path below = Files.createDirectories(folder.resolve(version));
    compile(List.of(flags), "cuda_double.c", below.resolve(CUDA), List.of());
  }

  private static void nccl(Path folder, Path to, List<String> flags) throws IOException {
    List<String> withCuda = List.of("-L" + folder, "-l:" + CUDA, "-lrt", "-Wl,-rpath," + folder);
    compile(flags, "nccl_double.c", to.resolve(NCCL), withCuda);
  }

  private static void compile(
      List<String> flags, String source, Path library, List<String> libraries) throws IOException {
    List<String> command = new ArrayList<>(List.of(COMPILER, "-std=gnu11", "-O1", "-g"));
    command.addAll(
        List.of("-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-pthread"));
    command.addAll(flags);
    command.addAll(List.of("-Wl,-soname," + library.getFileName(), "-o", library.toString()));
    command.add(SOURCES.resolve(source).toString());
    command.addAll(libraries);
    String error = run(command);
    if (!error.isEmpty()) {
      throw new AssertionError(COMPILER + " does not compile " + source + ":\n" + error);
    }
  }

  /** Returns the output of a failed command, or empty; the output goes to a file. */
  private static String run(List<String> command) throws IOException {
    Path log = Files.createTempFile("weft-compiler", ".log");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    try {
      boolean isWell =
          process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS) && process.exitValue() == 0;
      return isWell ? "" : "it failed: " + Files.readString(log, StandardCharsets.UTF_8);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while " + COMPILER + " ran", e);
    } finally {
      process.destroyForcibly();
      Files.delete(log);
    }
  }
}
