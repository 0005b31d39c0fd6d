package io.weft.memory;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/** A memory file system of a given size, mounted for one test; needs the right to mount. */
final class TinyFileSystem implements AutoCloseable {
  final Path path;

  private TinyFileSystem(Path path) {
    this.path = path;
  }

  /** Skips the test, with the reason in its output, if mounting is not possible. */
  static TinyFileSystem mount(long bytes) throws IOException, InterruptedException {
    Path path = Files.createTempDirectory("weft-test-mount-");
    String failure = run("mount", "-t", "tmpfs", "-o", "size=" + bytes, "tmpfs", path.toString());
    if (failure != null) {
      Files.delete(path);
      Assumptions.abort(
          "needs the right to mount a tmpfs (FaultyStorage covers the same cases): " + failure);
    }
    return new TinyFileSystem(path);
  }

  void makeReadOnly() throws IOException, InterruptedException {
    require("mount", "-o", "remount,ro", path.toString());
  }

  private static void require(String... command) throws IOException, InterruptedException {
    String failure = run(command);
    if (failure != null) {
      throw new IOException(String.join(" ", command) + ": " + failure);
    }
  }

  /** Returns null when the command succeeded, else its output. */
  private static String run(String... command) throws IOException, InterruptedException {
    Process process;
    try {
      process = new ProcessBuilder(List.of(command)).redirectErrorStream(true).start();
    } catch (IOException e) {
      return e.toString();
    }
    process.getOutputStream().close();
    String output =
        new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).trim();
    if (!process.waitFor(30, TimeUnit.SECONDS)) {
      process.destroyForcibly();
      return "it did not end within 30 s";
    }
    return process.exitValue() == 0 ? null : "exit " + process.exitValue() + " " + output;
  }

  @Override
  public void close() throws IOException {
    try {
      // Lazy, because a failed test may have left a mapping.
      require("umount", "--lazy", path.toString());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while unmounting " + path);
    }
    Files.delete(path);
  }
}
