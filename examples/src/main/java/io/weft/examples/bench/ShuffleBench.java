package io.weft.examples.bench;

import io.weft.examples.jobs.OpenTables;
import io.weft.examples.measure.Spread;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.Sides;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TpchTables;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.package$;

/** The benchmark of shuffles from start to end. Used once, by one thread. */
public final class ShuffleBench {
  private final ShuffleBenchOptions options;
  private final Progress progress;

  /** Says what it is doing on the progress line. */
  public ShuffleBench(ShuffleBenchOptions options, Progress progress) {
    this.options = options;
    this.progress = progress;
  }

  /** Measures everything. */
  public BenchReport run() throws IOException, InterruptedException {
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder work = cleanup.add(WorkFolder.create("weft-bench-", options.keep()));
      SideLauncher launcher = SideLauncher.create(work);
      Inputs inputs = new Inputs(work, launcher, cleanup, progress);
      List<Subject> subjects = new ArrayList<>();
      if (!options.workloads().isEmpty()) {
        subjects.addAll(inputs.shuffles(options.workloads(), options.factor()));
      }
      List<SideProcess> sides;
      if (options.queries().isEmpty()) {
        sides = start(launcher, cleanup);
      } else {
        Path tables = inputs.tables(options.tpchScale());
        sides = start(launcher, cleanup);
        open(sides, tables);
        options.queries().forEach(query -> subjects.add(Subject.query(query)));
      }
      BenchReport report = report(measure(new Rounds(sides, options.runs(), progress), subjects));
      progress.step("stopping the clusters");
      return report;
    }
  }

  private List<SideProcess> start(SideLauncher launcher, Cleanup cleanup)
      throws IOException, InterruptedException {
    List<SideOptions> wanted = new ArrayList<>(List.of(Sides.spark(Map.of())));
    options.transports().forEach(transport -> wanted.add(Sides.weft(transport, Map.of())));
    progress.step("starting " + wanted.size() + " clusters of two executors each");
    List<SideProcess> sides = new ArrayList<>();
    for (SideOptions side : wanted) {
      sides.add(cleanup.add(launcher.start(side)));
    }
    for (SideProcess side : sides) {
      side.awaitReady();
    }
    return sides;
  }

  private static void open(List<SideProcess> sides, Path tables)
      throws IOException, InterruptedException {
    for (SideProcess side : sides) {
      side.call(new OpenTables(tables.toString(), TpchTables.names()));
    }
  }

  private List<WorkloadResult> measure(Rounds rounds, List<Subject> subjects)
      throws IOException, InterruptedException {
    long end = System.nanoTime() + options.budget().toNanos();
    List<WorkloadResult> results = new ArrayList<>();
    for (Subject subject : subjects) {
      int left = subjects.size() - results.size();
      progress.step("measuring " + subject.title() + " (" + left + " to go)");
      Duration share = Duration.ofNanos(Math.max(0, end - System.nanoTime()) / left);
      results.add(rounds.measure(subject, share));
    }
    return results;
  }

  private BenchReport report(List<WorkloadResult> results) {
    List<Double> copies = results.stream().map(WorkloadResult::copyBytesPerSecond).toList();
    return new BenchReport(
        Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
        versionOf(ShuffleBench.class),
        package$.MODULE$.SPARK_VERSION(),
        System.getProperty("java.version"),
        System.getProperty("os.name") + " " + System.getProperty("os.version"),
        Runtime.getRuntime().availableProcessors(),
        Sides.CLUSTER,
        new Spread(copies).median(),
        options.runs(),
        results);
  }

  private static String versionOf(Class<?> type) {
    String version = type.getPackage().getImplementationVersion();
    return version == null ? "unpackaged" : version;
  }
}
