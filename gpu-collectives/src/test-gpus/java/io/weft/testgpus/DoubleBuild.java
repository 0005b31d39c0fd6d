package io.weft.testgpus;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Has gcc build the doubles of libcuda and libnccl, under the names of the real libraries. */
public final class DoubleBuild {
  public static final String CUDA = "libcuda.so.1";
  public static final String NCCL = "libnccl.so.2";

  private static final Path SOURCES =
      Path.of(System.getProperty("weft.rootFolder", ".."))
          .resolve("gpu-collectives/src/test/native")
          .toAbsolutePath();
  private static final String COMPILER = System.getenv().getOrDefault("CC", "gcc");
  private static final int PATIENCE_SECONDS = 120;

  private DoubleBuild() {}

  /** Why they cannot be built here; empty where they can. */
  public static String whyNot() {
    try {
      run(List.of(COMPILER, "--version"));
      return "";
    } catch (IOException e) {
      return "the doubles of libcuda and libnccl cannot be built: " + e.getMessage();
    }
  }

  /**
   * Both, as new as they are.
   *
   * @param flags for libcuda, such as -DWEFT_DOUBLE_DEVICES=1 for one GPU in place of eight
   * @throws IOException where there is no compiler
   * @throws AssertionError if it does not take the sources
   */
  public static void into(Path folder, String... flags) throws IOException {
    compile(
        List.of(flags), "cuda_double.c", Files.createDirectories(folder).resolve(CUDA), List.of());
    nccl(folder, folder, List.of());
  }

  /** An older libnccl in a folder below, beside the same libcuda. */
  public static void olderNccl(Path folder, String version, String... flags) throws IOException {
    Path below = Files.createDirectories(folder.resolve(version));
    Files.createSymbolicLink(below.resolve(CUDA), Path.of("..", CUDA));
    nccl(folder, below, List.of(flags));
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
      throw new AssertionError(COMPILER + " does not take " + source + ":\n" + error);
    }
  }

  /** What it says when it fails; empty when it does not. Its output goes to a file. */
  private static String run(List<String> command) throws IOException {
    Path log = Files.createTempFile("weft-compiler", ".log");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    try {
      boolean isWell =
          process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) && process.exitValue() == 0;
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
