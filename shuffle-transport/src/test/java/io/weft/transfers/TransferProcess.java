package io.weft.transfers;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * An executor in its own Java virtual machine, controlled by lines of text. Answers start with "=
 * ", to distinguish them from log lines.
 */
final class TransferProcess implements AutoCloseable {
  private static final int PATIENCE_SECONDS = 150;

  private final Process process;
  private final BufferedReader out;
  private final PrintStream in;

  /**
   * Starts an executor.
   *
   * @param host its host identity
   * @param executor 0 or 1
   * @param bootstrapIds ids of the rendezvous with the other executor, in order
   * @param properties of its virtual machine, such as -Dname=value, or of its environment, such as
   *     NAME=value
   */
  TransferProcess(
      Path folder,
      String host,
      int executor,
      Duration deadline,
      List<String> bootstrapIds,
      String... properties)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    Map<String, String> environment = new HashMap<>();
    for (String property : properties) {
      if (property.startsWith("-")) {
        command.add(property);
      } else {
        environment.put(
            property.substring(0, property.indexOf('=')),
            property.substring(property.indexOf('=') + 1));
      }
    }
    command.addAll(
        List.of(
            "-cp",
            System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
            TransferChild.class.getName(),
            folder.toString(),
            host,
            Integer.toString(executor),
            Long.toString(deadline.toMillis())));
    command.addAll(bootstrapIds);
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
    builder.environment().putAll(environment);
    process = builder.start();
    out = process.inputReader(StandardCharsets.UTF_8);
    in = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
  }

  void order(String line) {
    in.println(line);
  }

  /** The answer to a command. Commands are answered in order. */
  String answer() throws Exception {
    return CompletableFuture.supplyAsync(this::read).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
  }

  private String read() {
    try {
      String line = out.readLine();
      while (line != null && !line.startsWith("= ")) {
        line = out.readLine();
      }
      return line == null ? "its process has ended" : line.substring(2);
    } catch (IOException e) {
      return e.toString();
    }
  }

  /** Ends the process at once, as kill -9 does. */
  void kill() throws InterruptedException {
    boolean ended = process.destroyForcibly().waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS);
    if (!ended) {
      throw new IllegalStateException("process " + process.pid() + " does not end");
    }
  }

  /** Stops the process without ending it, as SIGSTOP does. */
  void stop() throws IOException, InterruptedException {
    Process stop = new ProcessBuilder("kill", "-STOP", Long.toString(process.pid())).start();
    if (!stop.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) || stop.exitValue() != 0) {
      throw new IOException("kill -STOP " + process.pid() + " failed");
    }
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }
}
