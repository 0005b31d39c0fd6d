package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.JobCost;
import io.weft.examples.jobs.OpenTables;
import io.weft.examples.jobs.RunQuery;
import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.jobs.WriteInput;
import io.weft.examples.measure.Environment;
import io.weft.examples.measure.Rounds;
import io.weft.examples.measure.Spread;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.SideTask;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpch.TableWriter;
import io.weft.examples.tpch.TpchQuery;
import io.weft.examples.tpch.TpchTables;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.package$;

/** Runs the whole benchmark of shuffles. For one use and one thread. */
final class ShuffleBench {
  private final Options options;
  private final Progress progress;

  /** Shows its steps on the progress line. */
  ShuffleBench(Options options, Progress progress) {
    this.options = options;
    this.progress = progress;
  }

  /** Measures everything. */
  ShuffleReport run() throws IOException, InterruptedException {
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
      ShuffleReport report =
          report(measure(new ShuffleRounds(sides, options.runs(), progress), subjects));
      progress.step("stopping the clusters");
      return report;
    }
  }

  private List<SideProcess> start(SideLauncher launcher, Cleanup cleanup)
      throws IOException, InterruptedException {
    List<SideOptions> wanted = new ArrayList<>(List.of(SideOptions.spark(Map.of())));
    options.transports().forEach(transport -> wanted.add(SideOptions.weft(transport, Map.of())));
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

  private List<ShuffleReport.WorkloadResult> measure(ShuffleRounds rounds, List<Subject> subjects)
      throws IOException, InterruptedException {
    long end = System.nanoTime() + options.budget().toNanos();
    List<ShuffleReport.WorkloadResult> results = new ArrayList<>();
    for (Subject subject : subjects) {
      int left = subjects.size() - results.size();
      progress.step("measuring " + subject.title() + " (" + left + " to go)");
      Duration share = Duration.ofNanos(Math.max(0, end - System.nanoTime()) / left);
      results.add(rounds.measure(subject, share));
    }
    return results;
  }

  private ShuffleReport report(List<ShuffleReport.WorkloadResult> results) {
    List<Double> copies =
        results.stream().map(ShuffleReport.WorkloadResult::copyBytesPerSecond).toList();
    Environment environment = Environment.current();
    return new ShuffleReport(
        environment.when(),
        environment.weftVersion(),
        package$.MODULE$.SPARK_VERSION(),
        environment.javaVersion(),
        environment.system(),
        environment.cores(),
        SideOptions.CLUSTER,
        new Spread(copies).median(),
        options.runs(),
        results);
  }

  /**
   * The choice of what to measure.
   *
   * @param workloads in order
   * @param queries of TPC-H; may be empty
   * @param transports of Weft to compare with Spark: shm, tcp
   * @param factor of rows, more than 0; 1 is a full run
   * @param tpchScale the scale of the queries' tables
   * @param runs on each side that count, at least 1
   * @param budget time for all measurements; a workload gets fewer runs, but at least two, when
   *     time runs out
   * @param keep whether the temporary folder with its logs stays
   */
  record Options(
      List<Workload> workloads,
      List<TpchQuery> queries,
      List<String> transports,
      double factor,
      double tpchScale,
      int runs,
      Duration budget,
      boolean keep) {
    /** The name of the queries in a list of workloads. */
    static final String TPCH = "tpch";

    Options {
      workloads = List.copyOf(workloads);
      queries = List.copyOf(queries);
      transports = List.copyOf(transports);
      if (!(factor > 0)) {
        throw new IllegalArgumentException(
            "the factor of rows has to be more than 0, not " + factor);
      }
      Rounds.requireRuns(runs);
    }
  }

  /**
   * A workload or query that every side runs.
   *
   * @param id its name
   * @param title for tables
   * @param base the job without the shuffle; empty for a query
   * @param job the whole job
   * @param check computes a fingerprint of the result, which is equal on all sides
   * @param rows shuffled, or read by a workload that is a query; 0 for TPC-H
   * @param dataBytes in shuffled rows; 0 for a query
   */
  record Subject(
      String id,
      String title,
      Optional<SideTask<JobCost>> base,
      SideTask<JobCost> job,
      SideTask<String> check,
      long rows,
      long dataBytes) {

    static Subject shuffle(Workload workload, ShuffleJob job, long rows, long dataBytes) {
      return new Subject(
          workload.id(),
          workload.title(),
          workload.wholeJob() ? Optional.empty() : Optional.of(job.withoutShuffle()),
          job,
          new ShuffleJob.Fingerprint(job),
          rows,
          dataBytes);
    }

    static Subject query(TpchQuery query) {
      return new Subject(
          "tpch-" + query.name().toLowerCase(Locale.ROOT),
          "TPC-H " + query,
          Optional.empty(),
          new RunQuery.CostOnly(query.text()),
          new RunQuery.Fingerprint(query.text()),
          0,
          0);
    }
  }

  /** Writes the inputs of workloads, in a process that ends before a measurement begins. */
  static final class Inputs {
    private final WorkFolder work;
    private final SideLauncher launcher;
    private final Cleanup cleanup;
    private final Progress progress;

    Inputs(WorkFolder work, SideLauncher launcher, Cleanup cleanup, Progress progress) {
      this.work = work;
      this.launcher = launcher;
      this.cleanup = cleanup;
      this.progress = progress;
    }

    /** Writes the inputs of workloads and returns the subjects to measure. */
    List<Subject> shuffles(List<Workload> workloads, double factor)
        throws IOException, InterruptedException {
      progress.step("writing the workloads' inputs");
      List<Subject> subjects = new ArrayList<>();
      try (SideProcess writer = cleanup.add(launcher.start(SideOptions.writer()))) {
        for (Workload workload : workloads) {
          progress.detail("writing the input of " + workload.title());
          subjects.add(subject(writer, workload, factor));
        }
      }
      return subjects;
    }

    private Subject subject(SideProcess writer, Workload workload, double factor)
        throws IOException, InterruptedException {
      String folder = work.folder("inputs").resolve(workload.id()).toString();
      Optional<WriteInput> input = workload.input(factor, folder);
      ShuffleJob job = workload.job(factor, folder);
      long dataBytes = 0;
      if (input.isPresent()) {
        dataBytes = writer.call(input.get());
      } else if (!workload.wholeJob()) {
        dataBytes = writer.call(new ShuffleJob.PackedBytes(job.source()));
      }
      return Subject.shuffle(workload, job, workload.rows(factor), dataBytes);
    }

    /** Writes the tables of TPC-H and returns their folder. */
    Path tables(double scale) throws IOException, InterruptedException {
      Path folder = work.folder("tpch");
      new TableWriter(launcher, cleanup, progress).write(folder, scale);
      return folder;
    }
  }
}
