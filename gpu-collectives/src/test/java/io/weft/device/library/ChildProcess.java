package io.weft.device.library;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A process that is run to its end, or is killed. What it prints goes to a file, so that nothing
 * waits for anybody to read it and nobody waits for it to print.
 */
public final class ChildProcess {
  private ChildProcess() {}

  /**
   * How it ended.
   *
   * @param output of both its outputs, in the order in which it came
   * @param exitValue its own, or KILLED when it was too slow
   */
  public record Outcome(String output, int exitValue) {
    public static final int KILLED = -1;

    public boolean isWell() {
      return exitValue == 0;
    }

    @Override
    public String toString() {
      return (exitValue == KILLED ? "killed as too slow" : "exit value " + exitValue)
          + ", output:\n"
          + output;
    }
  }

  public static Outcome run(List<String> command, Duration patience) throws IOException {
    Path log = Files.createTempFile("weft-child", ".log");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    try {
      boolean ended = process.waitFor(patience.toMillis(), TimeUnit.MILLISECONDS);
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
