package io.weft.host;

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

/** Another process that runs {@link ChildMain}; killed at close if it still runs. */
final class ChildJvm implements AutoCloseable {
  private static final long PATIENCE_SECONDS = 60;

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

  /** With a command in front of java, as for another user. */
  static ChildJvm start(List<String> prefix, String classPath, String... arguments)
      throws IOException {
    List<String> command = new ArrayList<>(prefix);
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", classPath));
    command.add(ChildMain.class.getName());
    command.addAll(List.of(arguments));
    return new ChildJvm(
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start());
  }

  static String classPath() {
    return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
  }

  /** The next line the child prints. */
  String line() throws Exception {
    String line =
        CompletableFuture.supplyAsync(this::readLine).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
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

  /** No hook of the child runs. */
  void kill() throws InterruptedException {
    process.destroyForcibly();
    awaitEnd();
  }

  /** What a cluster manager does first. */
  void terminate() throws InterruptedException {
    terminateAll(List.of(this));
  }

  /** All at once. */
  static void terminateAll(List<ChildJvm> children) throws InterruptedException {
    children.forEach(child -> child.process.destroy());
    for (ChildJvm child : children) {
      child.awaitEnd();
    }
  }

  /** Lets the child do the next thing it was told to do. */
  void goOn() throws IOException {
    process.getOutputStream().write('\n');
    process.getOutputStream().flush();
  }

  /** Lets the child do the last thing it was told to do, and end. */
  int finish() throws IOException, InterruptedException {
    goOn();
    awaitEnd();
    return process.exitValue();
  }

  private void awaitEnd() throws InterruptedException {
    if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
      throw new IllegalStateException("the child still runs after " + PATIENCE_SECONDS + " s");
    }
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }
}
