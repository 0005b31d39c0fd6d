package io.weft.examples.bench.collectives;

import io.weft.collectives.UniqueId;
import io.weft.examples.side.LineProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Weft's collectives between Java processes. */
final class WeftSide implements CollectiveSide {
  private final RankOptions.Kind kind;
  private final List<LineProcess> ranks;

  private WeftSide(RankOptions.Kind kind, List<LineProcess> ranks) {
    this.kind = kind;
    this.ranks = ranks;
  }

  /**
   * Starts the ranks and waits until they are connected.
   *
   * @param work folder of the rendezvous and the logs
   * @param memory folder of the ranks' shared memory
   * @param placement the processors of the ranks
   */
  static WeftSide start(
      RankOptions.Kind kind, int nranks, Path work, Path memory, RankPlacement placement)
      throws IOException, InterruptedException {
    List<LineProcess> ranks = new ArrayList<>();
    WeftSide side = new WeftSide(kind, ranks);
    try {
      UniqueId id = UniqueId.create();
      for (int rank = 0; rank < nranks; rank++) {
        RankOptions options = new RankOptions(kind, work, memory, id, rank, nranks);
        String name = kind.label() + "-" + rank;
        ranks.add(
            new LineProcess(
                name,
                new ProcessBuilder(command(options, placement)),
                work.resolve(name + ".log")));
      }
      for (LineProcess rank : ranks) {
        String[] unused = rank.answer();
      }
      return side;
    } catch (IOException | InterruptedException | RuntimeException e) {
      side.close();
      throw e;
    }
  }

  /** Sets the number of processors, because a bound process sees only one. */
  private static List<String> command(RankOptions options, RankPlacement placement) {
    List<String> command = new ArrayList<>(placement.launcher(options.rank()));
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(
        List.of("-Xmx256m", "-XX:MaxDirectMemorySize=4g", "-XX:+UseSerialGC", "-XX:-UsePerfData"));
    command.add("-XX:ActiveProcessorCount=" + Runtime.getRuntime().availableProcessors());
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    command.add(RankMain.class.getName());
    command.addAll(options.arguments());
    return command;
  }

  @Override
  public String name() {
    return kind.title();
  }

  @Override
  public Optional<CollectiveSide.Timing> run(CollectiveCase test, boolean check, int iterations)
      throws IOException, InterruptedException {
    if (!kind.has(test)) {
      return Optional.empty();
    }
    String order = test.order(check, iterations);
    for (LineProcess rank : ranks) {
      rank.order(order);
    }
    long slowest = 0;
    long cpu = 0;
    long errors = 0;
    String algorithm = "";
    for (LineProcess rank : ranks) {
      String[] answer = rank.answer();
      slowest = Math.max(slowest, Long.parseLong(answer[1]));
      cpu += Long.parseLong(answer[2]);
      errors += Long.parseLong(answer[3]);
      algorithm = answer[4];
    }
    return Optional.of(new CollectiveSide.Timing(slowest, cpu, errors, algorithm));
  }

  @Override
  public void close() {
    ranks.forEach(LineProcess::close);
  }
}
