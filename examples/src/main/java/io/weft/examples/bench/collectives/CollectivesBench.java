package io.weft.examples.bench.collectives;

import io.weft.examples.measure.CopySpeed;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

/** The benchmark of collectives from start to end. Used once, by one thread. */
public final class CollectivesBench {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

  private final CollectivesBenchOptions options;
  private final Progress progress;

  /** Says what it is doing on the progress line. */
  public CollectivesBench(CollectivesBenchOptions options, Progress progress) {
    this.options = options;
    this.progress = progress;
  }

  /** Measures everything. */
  public CollectivesReport run() throws IOException, InterruptedException {
    try (Cleanup cleanup = new Cleanup()) {
      Path work = cleanup.add(WorkFolder.create("weft-bench-", false)).path();
      Path memory = cleanup.add(sharedMemory()).path();
      progress.step("measuring how fast memory is copied");
      double copyAlone = CopySpeed.measure(1);
      double copyTogether = CopySpeed.measure(options.nranks()) / options.nranks();
      String mpiVersion = mpiVersion();
      RankPlacement placement =
          options.bound() ? RankPlacement.bound(options.nranks()) : RankPlacement.FREE;
      List<CollectiveSide> sides = start(cleanup, work, memory, !mpiVersion.isEmpty(), placement);
      return new CollectivesReport(
          Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
          version(),
          System.getProperty("java.version"),
          mpiVersion,
          System.getProperty("os.name") + " " + System.getProperty("os.version"),
          Runtime.getRuntime().availableProcessors(),
          options.nranks(),
          copyAlone,
          copyTogether,
          options.runs(),
          placement.isBound(),
          measure(sides));
    }
  }

  private static WorkFolder sharedMemory() throws IOException {
    return Files.isWritable(SHARED_MEMORY)
        ? WorkFolder.createIn(SHARED_MEMORY, "weft-bench-")
        : WorkFolder.create("weft-bench-memory-", false);
  }

  static boolean isOnPath(String program) {
    String path = System.getenv().getOrDefault("PATH", "");
    return List.of(path.split(File.pathSeparator)).stream()
        .anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
  }

  private List<CollectiveSide> start(
      Cleanup cleanup, Path work, Path memory, boolean openMpi, RankPlacement placement)
      throws IOException, InterruptedException {
    progress.step("starting the ranks");
    List<CollectiveSide> sides = new ArrayList<>();
    for (RankOptions.Kind kind : options.kinds()) {
      sides.add(cleanup.add(WeftSide.start(kind, options.nranks(), work, memory, placement)));
    }
    if (openMpi) {
      sides.add(cleanup.add(MpiSide.start(options.nranks(), work, placement)));
    }
    return sides;
  }

  private List<CaseResult> measure(List<CollectiveSide> sides)
      throws IOException, InterruptedException {
    CollectiveRounds rounds =
        new CollectiveRounds(sides, options.runs(), options.share().toNanos());
    List<CaseResult> results = new ArrayList<>();
    List<CollectiveCase> cases = options.cases();
    for (CollectiveCase test : cases) {
      progress.step(
          "measuring %s of %s (%d to go)"
              .formatted(
                  test.operation(), Sizes.text(test.bytes()), cases.size() - results.size()));
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

  private static String version() {
    String version = CollectivesBench.class.getPackage().getImplementationVersion();
    return version == null ? "unpackaged" : version;
  }
}
