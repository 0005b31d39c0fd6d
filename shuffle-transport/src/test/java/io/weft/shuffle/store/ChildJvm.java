package io.weft.shuffle.store;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** A child process that runs {@link ChildMain}. Close kills it if it still runs. */
final class ChildJvm implements AutoCloseable {
  private static final long TIMEOUT_SECONDS = 60;

  private final Process process;
  private final BufferedReader output;

  private ChildJvm(Process process) {
    this.process = process;
    this.output =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
  }

  static ChildJvm start(String... arguments) throws IOException {
    return start(List.of(), classPath(), arguments);
  }

  /** Starts java with a command prefix, for example to run as another user. */
  static ChildJvm start(List<String> prefix, String classPath, String... arguments)
      throws IOException {
    List<String> command = new ArrayList<>(prefix);
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-cp", classPath));
    command.add(ChildMain.class.getName());
    command.addAll(List.of(arguments));
    return new ChildJvm(
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start());
  }

  static String classPath() {
    return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
  }

  /** Returns the next line that the child prints. */
  String line() throws Exception {
    String line =
        CompletableFuture.supplyAsync(this::readLine).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    if (line == null) {
      throw new IOException("the child ended with " + process.waitFor());
    }
    return line;
  }

  private String readLine() {
    try {
      return output.readLine();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Kills the child without its shutdown hooks. */
  void kill() throws InterruptedException {
    process.destroyForcibly();
    awaitEnd();
  }

  /** Sends SIGTERM, as a cluster manager does first. */
  void terminate() throws InterruptedException {
    terminateAll(List.of(this));
  }

  /** Sends SIGTERM to all children before it waits. */
  static void terminateAll(List<ChildJvm> children) throws InterruptedException {
    children.forEach(child -> child.process.destroy());
    for (ChildJvm child : children) {
      child.awaitEnd();
    }
  }

  /** Lets the child run its next step. */
  void goOn() throws IOException {
    process.getOutputStream().write('\n');
    process.getOutputStream().flush();
  }

  /** Lets the child run its last step and waits for its end. */
  int finish() throws IOException, InterruptedException {
    goOn();
    awaitEnd();
    return process.exitValue();
  }

  private void awaitEnd() throws InterruptedException {
    if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
      throw new IllegalStateException("the child still runs after " + TIMEOUT_SECONDS + " s");
    }
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }
}
