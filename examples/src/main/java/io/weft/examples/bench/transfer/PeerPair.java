package io.weft.examples.bench.transfer;

import io.weft.examples.measure.Rounds;
import io.weft.examples.side.LineProcess;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.TransportMode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.apache.spark.launcher.JavaModuleOptions;

/** Two executors in separate processes: one owns blocks, the other reads them. */
final class PeerPair implements AutoCloseable {
  private static final String OWNER = "owner";

  private final LineProcess owner;
  private final LineProcess reader;
  private String plainServer;

  private PeerPair(LineProcess owner, LineProcess reader) {
    this.owner = owner;
    this.reader = reader;
  }

  /**
   * Starts both executors on this host, without compression.
   *
   * @param name of the pair, in file names
   */
  static PeerPair start(String name, Path work, Path memory, TransportMode mode, boolean checksums)
      throws IOException, InterruptedException {
    PeerOptions options = options(name, work, memory, mode, checksums);
    return start(work, options, List.of(), options.as("reader-" + name), List.of());
  }

  /** Starts both executors on the two hosts of a network. */
  static PeerPair start(
      String name, Path work, Path memory, Compression.Rule compression, LimitedNetwork network)
      throws IOException, InterruptedException {
    PeerOptions options =
        options(name, work, memory, TransportMode.TCP, true).compressed(compression);
    return start(
        work,
        options.at(network.address(0)),
        network.on(0),
        options.as("reader-" + name).at(network.address(1)),
        network.on(1));
  }

  private static PeerPair start(
      Path work,
      PeerOptions owners,
      List<String> ownersHost,
      PeerOptions readers,
      List<String> readersHost)
      throws IOException, InterruptedException {
    LineProcess owner = process(work, owners, ownersHost);
    PeerPair pair;
    try {
      pair = new PeerPair(owner, process(work, readers, readersHost));
    } catch (IOException | RuntimeException e) {
      owner.close();
      throw e;
    }
    try {
      pair.introduce();
      return pair;
    } catch (IOException | InterruptedException | RuntimeException e) {
      pair.close();
      throw e;
    }
  }

  private static PeerOptions options(
      String name, Path work, Path memory, TransportMode mode, boolean checksums)
      throws IOException {
    return new PeerOptions(
        Files.createDirectories(memory.resolve(name)),
        Files.createDirectories(work.resolve(name)),
        OWNER,
        mode,
        checksums,
        Compression.Rule.NONE,
        PeerOptions.LOOPBACK);
  }

  private static LineProcess process(Path work, PeerOptions options, List<String> host)
      throws IOException {
    List<String> command = new ArrayList<>(host);
    command.addAll(java());
    command.add(PeerMain.class.getName());
    command.addAll(options.arguments());
    Path log = Files.createTempFile(work, options.executor() + "-", ".log");
    return new LineProcess(options.executor(), new ProcessBuilder(command), log);
  }

  /** The Java command of every process of this benchmark. */
  static List<String> java() {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData"));
    command.addAll(List.of(JavaModuleOptions.defaultModuleOptionArray()));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    return command;
  }

  private void introduce() throws IOException, InterruptedException {
    String[] ownersWords = owner.answer();
    String[] readersWords = reader.answer();
    plainServer = ownersWords[2];
    String[] known = ask(reader, "know " + ownersWords[1]);
    String[] unused = ask(owner, "know " + readersWords[1]);
    if (known.length != 1) {
      throw new IOException("the reader answered " + String.join(" ", known));
    }
  }

  private static String[] ask(LineProcess process, String order)
      throws IOException, InterruptedException {
    process.order(order);
    return process.answer();
  }

  void write(PeerBlocks blocks) throws IOException, InterruptedException {
    String[] unused = ask(owner, "write " + blocks.words());
  }

  Rounds.Cost readTogether(PeerBlocks blocks) throws IOException, InterruptedException {
    return timed("together " + OWNER + " " + blocks.words());
  }

  Rounds.Cost readOneByOne(PeerBlocks blocks) throws IOException, InterruptedException {
    return timed("one-by-one " + OWNER + " " + blocks.words());
  }

  Rounds.Cost readPlain(long bytes) throws IOException, InterruptedException {
    return timed("plain " + plainServer + " " + bytes);
  }

  Rounds.Cost readPlainMemory(long bytes) throws IOException, InterruptedException {
    return timed("plain-memory " + plainServer + " " + bytes);
  }

  private Rounds.Cost timed(String order) throws IOException, InterruptedException {
    long before = processorNanos();
    long nanos = Long.parseLong(ask(reader, order)[1]);
    return new Rounds.Cost(nanos / 1e9, (processorNanos() - before) / 1e9);
  }

  private long processorNanos() throws IOException, InterruptedException {
    return Long.parseLong(ask(owner, "cpu")[1]) + Long.parseLong(ask(reader, "cpu")[1]);
  }

  Histogram readAgain(PeerBlocks blocks, int times) throws IOException, InterruptedException {
    return Histograms.decode(ask(reader, "again " + OWNER + " " + times + " " + blocks.words())[1]);
  }

  Histogram readPlainAgain(long bytes, int times) throws IOException, InterruptedException {
    return Histograms.decode(
        ask(reader, "plain-again " + plainServer + " " + times + " " + bytes)[1]);
  }

  @Override
  public void close() {
    reader.close();
    owner.close();
  }
}
