package io.weft.support;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.FolderAdoption.Verify;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * An executor in its own JVM, controlled by lines of text. Answers start with "= ", which
 * distinguishes them from log lines.
 */
public final class ExecutorProcess implements AutoCloseable {
  private static final int PATIENCE_SECONDS = 60;

  private final Process process;
  private final BufferedReader out;
  private final PrintStream in;
  private final PeerAddress address;

  /** Starts an executor in the folder of a cluster. */
  public ExecutorProcess(Path folder, String executorId, TransportMode mode) throws IOException {
    this(folder, executorId, mode, Blocks.NOT_ADOPTABLE);
  }

  /** What becomes of the blocks of an executor. */
  public enum Blocks {
    /** In memory, and deleted after its death. */
    NOT_ADOPTABLE,
    /** In memory, and adoptable, as those of the others. */
    IN_MEMORY,
    /** On disk. */
    ON_DISK,
    /** On disk, encrypted. */
    ENCRYPTED
  }

  /** Starts an executor in the folder of a cluster. */
  public ExecutorProcess(Path folder, String executorId, TransportMode mode, Blocks blocks)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(argument -> argument.startsWith("--add") || argument.startsWith("-XX"))
        .forEach(command::add);
    command.addAll(List.of("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-cp", classPath(), ExecutorProcess.class.getName()));
    command.addAll(List.of(folder.toString(), executorId, mode.name(), blocks.name()));
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    out = process.inputReader(StandardCharsets.UTF_8);
    in = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
    address = parse(answer());
  }

  private static String classPath() {
    return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
  }

  public PeerAddress address() {
    return address;
  }

  /** Sends a command and waits for its answer. */
  public String order(String line) throws IOException {
    in.println(line);
    return answer();
  }

  private String answer() throws IOException {
    try {
      return CompletableFuture.supplyAsync(this::read).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (ExecutionException | TimeoutException e) {
      throw new IOException("no answer of executor process " + process.pid(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    }
  }

  private String read() {
    try {
      String line = out.readLine();
      while (line != null && !line.startsWith("= ")) {
        line = out.readLine();
      }
      if (line == null) {
        throw new IOException("the executor's process has ended");
      }
      return line.substring(2);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Sends the process a signal by its name. */
  public void signal(String name) throws IOException, InterruptedException {
    Process kill = new ProcessBuilder("kill", "-" + name, Long.toString(process.pid())).start();
    if (!kill.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) || kill.exitValue() != 0) {
      throw new IOException("kill -" + name + " " + process.pid() + " failed");
    }
  }

  /** Kills the process without cleanup and waits for its end. */
  public void kill() throws InterruptedException {
    if (!process.destroyForcibly().waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
      throw new IllegalStateException("process " + process.pid() + " does not end");
    }
  }

  /** Lets the process close its executor and end. */
  @Override
  public void close() throws InterruptedException {
    in.close();
    if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
      kill();
    }
  }

  /** Formats an address as one line. */
  public static String format(PeerAddress address) {
    return String.join(
        "\t",
        address.executorId(),
        address.incarnation(),
        address.host(),
        Integer.toString(address.port()),
        address.folder(),
        address.token(),
        address.bootId(),
        address.version());
  }

  private static PeerAddress parse(String line) {
    String[] part = line.split("\t");
    return new PeerAddress(
        part[0], part[1], part[2], Integer.parseInt(part[3]), part[4], part[5], part[6], part[7]);
  }

  /** The chunk sizes of {@code write}, known to both sides. */
  public static long size(long map, int partition, int chunk) {
    return chunk < 3 ? 1000 + (map * 77 + partition * 13L + chunk) % 5000 : 0;
  }

  /** Runs the executor until its input ends. */
  public static void main(String[] args) throws IOException {
    TestCluster cluster = new TestCluster(Path.of(args[0])).mode(TransportMode.valueOf(args[2]));
    Blocks blocks = Blocks.valueOf(args[3]);
    if (blocks != Blocks.NOT_ADOPTABLE) {
      cluster.adopting(Verify.NONE, true);
    }
    if (blocks == Blocks.ON_DISK || blocks == Blocks.ENCRYPTED) {
      cluster.memory(TestCluster.SEGMENT_BYTES, 256 << 20);
    }
    if (blocks == Blocks.ENCRYPTED) {
      cluster.encrypted();
    }
    try (ExecutorExchange exchange = cluster.open(args[1])) {
      answer(format(exchange.address()));
      BufferedReader orders =
          new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      ChunkReader open = null;
      for (String line = orders.readLine(); line != null; line = orders.readLine()) {
        String[] order = line.split(" ", 2);
        switch (order[0]) {
          case "peer" -> cluster.announce(parse(order[1]));
          case "write" -> write(exchange, order[1].split(" "));
          case "remove" -> exchange.removeShuffle(Integer.parseInt(order[1]));
          case "open" -> open = open(exchange, order[1].split(" "));
          default -> throw new IOException(line);
        }
        answer("done " + (open == null));
      }
    }
    System.exit(0);
  }

  private static void answer(String text) {
    System.out.println("= " + text);
  }

  private static void write(ExecutorExchange exchange, String[] order) throws IOException {
    int shuffle = Integer.parseInt(order[0]);
    for (long map = 0; map < Long.parseLong(order[1]); map++) {
      TestBlocks.write(
          exchange, new BlockKey(shuffle, map), Integer.parseInt(order[2]), ExecutorProcess::size);
    }
  }

  /** Opens a reader and stops at its first chunk. */
  private static ChunkReader open(ExecutorExchange exchange, String[] order) throws IOException {
    BlockKey key = new BlockKey(Integer.parseInt(order[1]), 0);
    BlockRequest request = TestBlocks.request(order[0], key, 0, 1, 10);
    ChunkReader reader = exchange.read(List.of(request), FetchListener.NONE);
    reader.next();
    return reader;
  }
}
