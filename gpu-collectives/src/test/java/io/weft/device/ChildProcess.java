package io.weft.device;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Runs a process to its end, or kills it after a timeout. Its output goes to a file, so that
 * neither the process nor the reader waits for the other.
 */
public final class ChildProcess {
  private ChildProcess() {}

  /**
   * The result of a process.
   *
   * @param output both its outputs, in order
   * @param exitValue its exit value, or KILLED after a timeout
   */
  public record Outcome(String output, int exitValue) {
    public static final int KILLED = -1;

    public boolean isWell() {
      return exitValue == 0;
    }

    @Override
    public String toString() {
      return (exitValue == KILLED ? "killed after a timeout" : "exit value " + exitValue)
          + ", output:\n"
          + output;
    }
  }

  public static Outcome run(List<String> command, Duration timeout) throws IOException {
    Path log = Files.createTempFile("weft-child", ".log");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    try {
      boolean ended = process.waitFor(timeout.toMillis(), TimeUnit.MILLISECONDS);
      String output = Files.readString(log, StandardCharsets.UTF_8);
      return new Outcome(output, ended ? process.exitValue() : Outcome.KILLED);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while " + command.get(0) + " ran", e);
    } finally {
      process.destroyForcibly();
      Files.delete(log);
    }
  }
}
