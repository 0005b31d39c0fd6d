package io.weft.spark.rapids;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/** Executor 1, with tables 0 to 99, in its own Java virtual machine. */
final class ServingProcess implements AutoCloseable {
  static final int TABLES = 100;
  private static final int PATIENCE_SECONDS = 90;
  private static final String READY = "= ";

  private final Process process;
  private final BlockManagerId id;

  /** Starts it and waits for its port. */
  ServingProcess(Path shared, RapidsGpuPath way) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(
        List.of(
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
            Doubles.property(),
            "-cp",
            System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
            ServingProcess.class.getName(),
            shared.toString(),
            way.name()));
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
    String topology =
        CompletableFuture.supplyAsync(() -> read(out)).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    id = BlockManagerId.apply("1", "127.0.0.1", 7001, Option.apply(topology));
  }

  private static String read(BufferedReader out) {
    try {
      String line = out.readLine();
      while (line != null && !line.startsWith(READY)) {
        line = out.readLine();
      }
      if (line == null) {
        throw new IllegalStateException("the process has ended");
      }
      return line.substring(READY.length());
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  static int size(int table) {
    return table * 777;
  }

  /** The child's side. */
  public static void main(String[] args) throws IOException {
    TestExecutor executor =
        new TestExecutor(
            Path.of(args[0]),
            1,
            RapidsGpuPath.valueOf(args[1]),
            Map.of(),
            Duration.ofSeconds(60),
            Duration.ofMinutes(5));
    for (int table = 0; table < TABLES; table++) {
      executor.add(table, size(table));
    }
    System.out.println(READY + executor.id().topologyInfo().get());
    // Runs until its parent ends it.
    int unused = System.in.read();
  }

  BlockManagerId id() {
    return id;
  }

  /** Kills the process, as kill -9 does. */
  void kill() throws InterruptedException {
    if (!process.destroyForcibly().waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
      throw new IllegalStateException("process " + process.pid() + " does not end");
    }
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }
}
