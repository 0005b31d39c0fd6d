package io.weft.examples.bench.collectives;

import io.weft.collectives.DataType;
import io.weft.collectives.OperationKind;
import io.weft.collectives.ReduceOp;
import io.weft.examples.measure.CopySpeed;
import io.weft.examples.measure.Environment;
import io.weft.examples.measure.Rounds;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Runs the whole benchmark of collectives. For one use and one thread. */
final class CollectivesBench {
  private final Options options;
  private final Progress progress;

  /** Shows its steps on the progress line. */
  CollectivesBench(Options options, Progress progress) {
    this.options = options;
    this.progress = progress;
  }

  /** Measures everything. */
  CollectivesReport run() throws IOException, InterruptedException {
    Environment environment = Environment.current();
    progress.step("measuring how fast memory is copied");
    double copyAlone = CopySpeed.measure(1);
    String mpiVersion = mpiVersion();
    List<CollectivesReport.Gang> gangs = new ArrayList<>();
    List<CollectivesReport.CaseResult> results = new ArrayList<>();
    for (int nranks : options.ranks()) {
      RankPlacement placement = options.bound() ? RankPlacement.bound(nranks) : RankPlacement.FREE;
      double copyTogether = CopySpeed.measure(nranks) / nranks;
      gangs.add(new CollectivesReport.Gang(nranks, copyTogether, placement.isBound()));
      results.addAll(measure(nranks, placement, !mpiVersion.isEmpty()));
    }
    return new CollectivesReport(
        environment.when(),
        environment.weftVersion(),
        environment.javaVersion(),
        mpiVersion,
        environment.system(),
        environment.cores(),
        gangs,
        copyAlone,
        options.runs(),
        results);
  }

  /** Measures all cases of a number of ranks, which end before the next number's ranks start. */
  private List<CollectivesReport.CaseResult> measure(
      int nranks, RankPlacement placement, boolean openMpi)
      throws IOException, InterruptedException {
    try (Cleanup cleanup = new Cleanup()) {
      Path work = cleanup.add(WorkFolder.create("weft-bench-", false)).path();
      Path memory = cleanup.add(WorkFolder.createInSharedMemory("weft-bench-")).path();
      progress.step("starting %d ranks on each side".formatted(nranks));
      List<CollectiveSide> sides = new ArrayList<>();
      for (RankOptions.Kind kind : options.kinds()) {
        sides.add(cleanup.add(WeftSide.start(kind, nranks, work, memory, placement)));
      }
      if (openMpi) {
        sides.add(cleanup.add(MpiSide.start(nranks, work, placement)));
      }
      return measure(sides, options.cases(nranks));
    }
  }

  static boolean isOnPath(String program) {
    String path = System.getenv().getOrDefault("PATH", "");
    return List.of(path.split(File.pathSeparator)).stream()
        .anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
  }

  private List<CollectivesReport.CaseResult> measure(
      List<CollectiveSide> sides, List<CollectiveCase> cases)
      throws IOException, InterruptedException {
    CollectiveRounds rounds =
        new CollectiveRounds(sides, options.runs(), options.share().toNanos());
    List<CollectivesReport.CaseResult> results = new ArrayList<>();
    for (CollectiveCase test : cases) {
      progress.step(
          "measuring %s of %s on %d ranks (%d to go)"
              .formatted(
                  test.operation(),
                  Sizes.text(test.bytes()),
                  test.nranks(),
                  cases.size() - results.size()));
      results.add(rounds.measure(test));
    }
    return results;
  }

  private String mpiVersion() throws IOException, InterruptedException {
    if (!options.openMpi() || !MpiSide.isInstalled()) {
      return "";
    }
    Process process = new ProcessBuilder("mpirun", "--version").redirectErrorStream(true).start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    int unused = process.waitFor();
    return text.lines().findFirst().orElse("unknown").replaceAll("[^0-9]*([0-9.]+).*", "$1");
  }

  /**
   * The choice of what to measure.
   *
   * @param operations in order
   * @param sizes in bytes, as nccl-tests counts them
   * @param type of the elements
   * @param reduction for operations that reduce
   * @param ranks numbers of processes on each side, 2 or more
   * @param inPlace whether every rank uses one buffer
   * @param kinds of Weft's ranks
   * @param openMpi whether to compare with OpenMPI where it is installed
   * @param bound whether each rank is bound to its own processor, where there are enough
   * @param runs on each side that count
   * @param share the time for which a side repeats an operation in one run
   */
  record Options(
      List<OperationKind> operations,
      List<Long> sizes,
      DataType type,
      ReduceOp reduction,
      List<Integer> ranks,
      boolean inPlace,
      List<RankOptions.Kind> kinds,
      boolean openMpi,
      boolean bound,
      int runs,
      Duration share) {
    Options {
      operations = List.copyOf(operations);
      sizes = List.copyOf(sizes);
      kinds = List.copyOf(kinds);
      ranks = ranks.stream().distinct().toList();
      for (int nranks : ranks) {
        if (nranks < 2) {
          throw new IllegalArgumentException("collectives need 2 ranks or more, not " + nranks);
        }
      }
      for (OperationKind operation : operations) {
        if (inPlace && !CollectiveCase.worksInPlace(operation)) {
          throw new IllegalArgumentException(
              operation + " needs two buffers; leave out --in-place or choose other --operations");
        }
      }
      Rounds.requireRuns(runs);
    }

    /** Returns all cases by operation, then size. Sizes with the same element count become one. */
    List<CollectiveCase> cases(int nranks) {
      return operations.stream()
          .flatMap(
              operation ->
                  sizes.stream()
                      .map(
                          bytes ->
                              CollectiveCase.ofSize(
                                  operation, type, reduction, bytes, nranks, inPlace)))
          .distinct()
          .toList();
    }
  }
}
