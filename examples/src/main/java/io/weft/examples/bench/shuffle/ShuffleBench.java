package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.JobCost;
import io.weft.examples.jobs.Limited;
import io.weft.examples.jobs.OpenTables;
import io.weft.examples.jobs.QueryResult;
import io.weft.examples.jobs.RunQuery;
import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.jobs.WriteInput;
import io.weft.examples.measure.Environment;
import io.weft.examples.measure.MeasureOptions.SoFar;
import io.weft.examples.measure.Rounds;
import io.weft.examples.measure.Spread;
import io.weft.examples.side.Cleanup;
import io.weft.examples.side.SideException;
import io.weft.examples.side.SideLauncher;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.side.SideTask;
import io.weft.examples.side.WorkFolder;
import io.weft.examples.tables.TableSet;
import io.weft.examples.tables.TableWriter;
import io.weft.examples.terminal.Progress;
import io.weft.examples.tpcds.TpcdsTables;
import io.weft.examples.tpch.TpchTables;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
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

  /** Measures everything, and keeps the report after each subject. */
  ShuffleReport run(SoFar<ShuffleReport> soFar) throws IOException, InterruptedException {
    return withSides(
        (sides, subjects) ->
            measure(
                subjects,
                new ShuffleRounds(sides, options.warmUps(), options.runs(), progress)::measure,
                soFar));
  }

  /** Only compares results. Returns whether all are equal and none failed. */
  boolean compare() throws IOException, InterruptedException {
    return withSides((sides, subjects) -> new CompareRun(sides, progress).run(subjects));
  }

  /** What to do with running sides and prepared subjects. */
  private interface Work<R> {
    R run(List<SideProcess> sides, List<Subject> subjects) throws IOException, InterruptedException;
  }

  private <R> R withSides(Work<R> work) throws IOException, InterruptedException {
    try (Cleanup cleanup = new Cleanup()) {
      WorkFolder folder = cleanup.add(WorkFolder.create("weft-bench-", options.keep()));
      SideLauncher launcher = SideLauncher.create(folder);
      List<Subject> subjects = new Inputs(folder, launcher, cleanup, progress).subjects(options);
      R result = work.run(start(launcher, cleanup), subjects);
      progress.step("stopping the clusters");
      return result;
    }
  }

  private List<SideProcess> start(SideLauncher launcher, Cleanup cleanup)
      throws IOException, InterruptedException {
    Map<String, String> common = options.settings();
    List<SideOptions> wanted = new ArrayList<>(List.of(SideOptions.spark(common)));
    options.transports().forEach(transport -> wanted.add(SideOptions.weft(transport, common)));
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

  /** Measures one subject within its share of time. */
  @FunctionalInterface
  interface MeasureOne {
    ShuffleReport.WorkloadResult measure(Subject subject, Duration share)
        throws IOException, InterruptedException;
  }

  /** Keeps the report after each subject and returns the last one. */
  ShuffleReport measure(List<Subject> subjects, MeasureOne one, SoFar<ShuffleReport> soFar)
      throws IOException, InterruptedException {
    ShuffleReport report = null;
    long end = System.nanoTime() + options.budget().toNanos();
    List<ShuffleReport.WorkloadResult> results = new ArrayList<>();
    for (Subject subject : subjects) {
      int left = subjects.size() - results.size();
      progress.step("measuring " + subject.title() + " (" + left + " to go)");
      Duration share = Duration.ofNanos(Math.max(0, end - System.nanoTime()) / left);
      results.add(one.measure(subject, share));
      report = report(results, left - 1);
      soFar.keep(report);
    }
    return report;
  }

  private ShuffleReport report(List<ShuffleReport.WorkloadResult> results, int left) {
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
        options.settings(),
        new Spread(copies).median(),
        options.warmUps(),
        options.runs(),
        results,
        left);
  }

  /**
   * The choice of what to measure.
   *
   * @param workloads in order
   * @param queries may be empty
   * @param transports of Weft to compare with Spark: shm, tcp
   * @param settings of all sides
   * @param factor of rows, more than 0; 1 is a full run
   * @param scale the scale of the queries' tables
   * @param data the folder of the queries' tables, a subfolder for each set; empty for a temporary
   *     one
   * @param timeout of one run of a query
   * @param warmUps runs on each side before those that count, at least 1
   * @param runs on each side that count, at least 1
   * @param budget time for all measurements; a workload gets fewer runs, but at least two, when
   *     time runs out
   * @param keep whether the temporary folder with its logs stays
   */
  record Options(
      List<Workload> workloads,
      List<Query> queries,
      List<String> transports,
      Map<String, String> settings,
      double factor,
      double scale,
      Optional<Path> data,
      Duration timeout,
      int warmUps,
      int runs,
      Duration budget,
      boolean keep) {
    /** The names of the queries in a list of workloads. */
    static final List<String> QUERY_SETS = List.of(TpchTables.ALL.id(), TpcdsTables.ALL.id());

    Options {
      workloads = List.copyOf(workloads);
      queries = List.copyOf(queries);
      transports = List.copyOf(transports);
      settings = Map.copyOf(settings);
      transports.forEach(SideOptions::requireTransport);
      SideOptions.requireCommon(settings);
      if (!(factor > 0)) {
        throw new IllegalArgumentException(
            "the factor of rows has to be more than 0, not " + factor);
      }
      if (!(scale > 0)) {
        throw new IllegalArgumentException("the scale has to be more than 0, not " + scale);
      }
      if (workloads.isEmpty() && queries.isEmpty()) {
        throw new IllegalArgumentException("name a workload");
      }
      Rounds.requireRuns(warmUps);
      Rounds.requireRuns(runs);
    }

    /** The same with the first workload only, or the first query if there is no workload. */
    Options onlyFirst() {
      return new Options(
          workloads.stream().limit(1).toList(),
          workloads.isEmpty() ? queries.subList(0, 1) : List.of(),
          transports,
          settings,
          factor,
          scale,
          data,
          timeout,
          warmUps,
          runs,
          budget,
          keep);
    }
  }

  /**
   * A workload or query that every side runs.
   *
   * @param id its name
   * @param title for tables
   * @param tables to open before; empty for a shuffle
   * @param base the job without the shuffle; empty for a query
   * @param job the whole job
   * @param check compares the results of the sides
   * @param rows shuffled, or read by a workload that is a whole job; 0 for a query of a set
   * @param dataBytes in shuffled rows; 0 for a whole job
   */
  record Subject(
      String id,
      String title,
      Optional<OpenTables> tables,
      Optional<SideTask<JobCost>> base,
      SideTask<JobCost> job,
      Check check,
      long rows,
      long dataBytes) {

    /**
     * Its result.
     *
     * @param problem why it failed, or how the results differ; null if there is no problem
     */
    ShuffleReport.WorkloadResult result(
        double copySpeed, String problem, List<ShuffleReport.SideResult> sides) {
      return new ShuffleReport.WorkloadResult(
          id, title, base.isEmpty(), rows, dataBytes, copySpeed, problem, sides);
    }

    static Subject shuffle(Workload workload, ShuffleJob job, long rows, long dataBytes) {
      return new Subject(
          workload.id(),
          workload.title(),
          Optional.empty(),
          workload.wholeJob() ? Optional.empty() : Optional.of(job.withoutShuffle()),
          job,
          Check.fingerprint(new ShuffleJob.Fingerprint(job)),
          rows,
          dataBytes);
    }

    /**
     * Opens its tables on a side, unless they are open.
     *
     * @param opened the tables that each side has opened last
     */
    void open(SideProcess side, Map<SideProcess, OpenTables> opened)
        throws SideException, InterruptedException {
      if (tables.isPresent() && !tables.get().equals(opened.get(side))) {
        side.call(tables.get());
        opened.put(side, tables.get());
      }
    }

    static Subject query(Query query, OpenTables tables, Duration timeout) {
      long seconds = timeout.toSeconds();
      return new Subject(
          query.id(),
          query.title(),
          Optional.of(tables),
          Optional.empty(),
          new Limited<>(new RunQuery.CostOnly(query.text()), seconds),
          Check.rows(
              new Limited<>(new QueryResult(query.text()), seconds),
              new Limited<>(new QueryResult.EveryAllowed(query.text()), seconds)),
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

    /** Writes the inputs of workloads and queries, and returns the subjects to measure. */
    List<Subject> subjects(Options options) throws IOException, InterruptedException {
      List<Subject> subjects = new ArrayList<>();
      if (!options.workloads().isEmpty()) {
        subjects.addAll(shuffles(options.workloads(), options.factor()));
      }
      Map<TableSet, OpenTables> opened = new HashMap<>();
      for (Query query : options.queries()) {
        if (!opened.containsKey(query.tables())) {
          opened.put(query.tables(), tables(query.tables(), options));
        }
        subjects.add(Subject.query(query, opened.get(query.tables()), options.timeout()));
      }
      return subjects;
    }

    private List<Subject> shuffles(List<Workload> workloads, double factor)
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

    private OpenTables tables(TableSet tables, Options options)
        throws IOException, InterruptedException {
      Path folder =
          new TableWriter(launcher, cleanup, progress)
              .provide(
                  tables,
                  options.data().map(data -> data.resolve(tables.id())),
                  work,
                  options.scale());
      return new OpenTables(folder.toString(), tables.names());
    }
  }
}
