package io.weft.tests.support;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * An HDFS for a class of tests: a name node and a data node in one JVM of their own, because their
 * jars do not fit the class path of the tests. Use a static field with {@code @RegisterExtension},
 * ordered before the {@link Workspace}, which would take the process for a leftover.
 */
public final class HdfsProcess implements BeforeAllCallback, AfterAllCallback {
  private static final String MAIN = "org.apache.hadoop.test.MiniDFSClusterManager";
  private static final Duration START_LIMIT = Duration.ofMinutes(2);

  private Path folder;
  private Process process;
  private int port;

  /** The address of the root, without a slash at the end. */
  public String uri() {
    return "hdfs://127.0.0.1:" + port;
  }

  /** Kills it: its clients find no server. */
  public void kill() {
    process.destroyForcibly();
    try {
      if (!process.waitFor(1, TimeUnit.MINUTES)) {
        throw new AssertionError("HDFS, process " + process.pid() + ", does not end");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted while HDFS ends", e);
    }
  }

  /** Stops the process, which keeps its connections: its clients get no answer. */
  public void suspend() {
    Signals.stop(process.pid());
  }

  /** Ends {@link #suspend}. */
  public void resume() {
    Signals.resume(process.pid());
  }

  @Override
  public void beforeAll(ExtensionContext context) throws IOException {
    folder = BuildTree.newFolder("hdfs");
    Path details = folder.resolve("details.json");
    process =
        new ProcessBuilder(command(details))
            .redirectErrorStream(true)
            .redirectOutput(log().toFile())
            .start();
    try {
      Awaitility.await("HDFS, " + log())
          .atMost(START_LIMIT)
          .failFast("HDFS has ended", () -> !process.isAlive())
          .until(() -> Files.exists(details) && Files.size(details) > 0);
      port = new ObjectMapper().readTree(details.toFile()).get("namenode_port").asInt();
    } catch (RuntimeException e) {
      String written = Files.readString(log());
      kill();
      throw new IllegalStateException("HDFS did not start: " + e + "\n" + written, e);
    }
  }

  private List<String> command(Path details) throws IOException {
    Path jars = BuildTree.root().resolve("tests/hdfs/target/class-path");
    return List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        Files.readString(jars).trim() + File.pathSeparator + folder,
        MAIN,
        "-datanodes",
        "1",
        "-format",
        "-writeDetails",
        details.toString(),
        "-D",
        "hdfs.minidfs.basedir=" + folder.resolve("blocks"));
  }

  private Path log() {
    return folder.resolve("log");
  }

  @Override
  public void afterAll(ExtensionContext context) {
    if (process != null) {
      kill();
    }
    try {
      Folders.delete(folder);
    } catch (UncheckedIOException e) {
      throw new AssertionError("HDFS still writes to " + folder, e);
    }
  }
}
