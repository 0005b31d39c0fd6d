package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.jobs.JobCost;
import io.weft.examples.jobs.OpenTables;
import io.weft.examples.jobs.Settle;
import io.weft.examples.measure.CopySpeed;
import io.weft.examples.measure.Quiet;
import io.weft.examples.measure.Rounds;
import io.weft.examples.measure.Spread;
import io.weft.examples.side.SideException;
import io.weft.examples.side.SideOptions;
import io.weft.examples.side.SideProcess;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Measures subjects in alternating rounds, after warm-ups of each side. For one thread. */
final class ShuffleRounds {
  private static final int FEWEST_RUNS = 2;
  private static final int COPY_THREADS = 2;

  private final List<SideProcess> sides;
  private final int warmUps;
  private final int runs;
  private final Progress progress;
  private final Map<SideProcess, OpenTables> opened = new HashMap<>();

  /**
   * @param warmUps runs of each subject on each side that do not count, at least 1
   */
  ShuffleRounds(List<SideProcess> sides, int warmUps, int runs, Progress progress) {
    this.sides = List.copyOf(sides);
    this.warmUps = warmUps;
    this.runs = runs;
    this.progress = progress;
  }

  /**
   * Measures one subject. If it fails on a side, the result says why.
   *
   * @param share the time for all of its rounds; two rounds run in any case
   */
  ShuffleReport.WorkloadResult measure(ShuffleBench.Subject subject, Duration share)
      throws IOException, InterruptedException {
    double copySpeed = CopySpeed.measure(COPY_THREADS);
    Map<SideProcess, Samples> samples = new LinkedHashMap<>();
    sides.forEach(side -> samples.put(side, new Samples(side.options())));
    try {
      String problem = measure(subject, share, samples).orElse(null);
      // The higher of two, because the clusters may still have been starting at the first.
      return subject.result(
          Math.max(copySpeed, CopySpeed.measure(COPY_THREADS)),
          problem,
          samples.values().stream().map(Samples::result).toList());
    } catch (SideException failure) {
      if (sides.stream().anyMatch(SideProcess::closed)) {
        throw failure;
      }
      progress.say(subject.title() + " failed:\n" + failure.getMessage());
      return subject.result(copySpeed, failure.summary(), List.of());
    }
  }

  /** Fills the samples and returns the first difference between results. */
  private Optional<String> measure(
      ShuffleBench.Subject subject, Duration share, Map<SideProcess, Samples> samples)
      throws IOException, InterruptedException {
    long start = System.nanoTime();
    Optional<String> problem = Optional.empty();
    for (SideProcess side : sides) {
      progress.detail(subject.title() + ", warming up " + side.options().label());
      Optional<String> difference = warmUp(subject, side, samples.get(side));
      if (problem.isEmpty()) {
        problem = difference.map(text -> side.options().label() + ": " + text);
      }
    }
    new Rounds(0, runs)
        .runWhile(
            sides,
            run -> run < FEWEST_RUNS || fits(System.nanoTime() - start, run + warmUps, share),
            (side, run) -> runOnce(subject, run, side, samples.get(side)));
    return problem;
  }

  /**
   * Whether another round probably ends in time.
   *
   * @param nanos since the first warm-up
   * @param rounds that have run, with the warm-ups
   */
  static boolean fits(long nanos, int rounds, Duration share) {
    return (double) nanos * (rounds + 1) / rounds <= share.toNanos();
  }

  private Optional<String> warmUp(ShuffleBench.Subject subject, SideProcess side, Samples samples)
      throws SideException, InterruptedException {
    subject.open(side, opened);
    ExecutorTotals before = side.call(new ExecutorTotals.Collect());
    Optional<String> difference = subject.check().difference(side);
    for (int run = 0; run < warmUps; run++) {
      if (subject.base().isPresent()) {
        side.call(subject.base().get());
      }
      side.call(subject.job());
    }
    samples.warmUp(side.call(new ExecutorTotals.Collect()).since(before));
    return difference;
  }

  private void runOnce(ShuffleBench.Subject subject, int run, SideProcess side, Samples samples)
      throws IOException, InterruptedException {
    progress.detail(
        subject.title() + ", run " + (run + 1) + " of " + runs + ", " + side.options().label());
    if (subject.base().isPresent()) {
      settle(side);
      double before = side.executorCpuSeconds();
      JobCost cost = side.call(subject.base().get());
      samples.base(cost, side.executorCpuSeconds() - before);
    }
    ExecutorTotals totals = side.call(new ExecutorTotals.Collect());
    settle(side);
    double before = side.executorCpuSeconds();
    JobCost cost = side.call(subject.job());
    double processCpuSeconds = side.executorCpuSeconds() - before;
    samples.job(cost, processCpuSeconds, side.call(new ExecutorTotals.Collect()).since(totals));
  }

  /** Waits for the leftovers of earlier jobs, so that the next job does not pay for them. */
  private static void settle(SideProcess side) throws IOException, InterruptedException {
    side.call(new Settle());
    Quiet.await();
  }

  /** Collects the runs of one side in one workload. Not thread-safe. */
  static final class Samples {
    private final SideOptions side;
    private final Series base = new Series();
    private final Series job = new Series();
    private final List<ExecutorTotals> moved = new ArrayList<>();
    private ExecutorTotals warmUp = ExecutorTotals.NONE;
    private long shuffleBytes;

    Samples(SideOptions side) {
      this.side = side;
    }

    void warmUp(ExecutorTotals totals) {
      warmUp = totals;
    }

    void base(JobCost cost, double processCpuSeconds) {
      base.add(cost, processCpuSeconds);
    }

    void job(JobCost cost, double processCpuSeconds, ExecutorTotals totals) {
      job.add(cost, processCpuSeconds);
      moved.add(totals);
      shuffleBytes = cost.shuffleBytes();
    }

    ShuffleReport.SideResult result() {
      ExecutorTotals all = moved.stream().reduce(ExecutorTotals.NONE, ExecutorTotals::plus);
      ExecutorTotals last = moved.get(moved.size() - 1);
      return new ShuffleReport.SideResult(
          side.name(),
          side.label(),
          base.seconds.isEmpty() ? null : new Spread(base.seconds),
          new Spread(job.seconds),
          less(job.seconds, base.seconds),
          less(job.cpuSeconds, base.cpuSeconds),
          less(job.processCpuSeconds, base.processCpuSeconds),
          shuffleBytes,
          last.ownBytes(),
          last.sameHostBytes(),
          last.networkBytes(),
          all.spilledBytes(),
          warmUp.freshBytes(),
          all.freshBytes());
    }

    /** The values less the median of those without the shuffle. */
    private static Spread less(List<Double> job, List<Double> base) {
      double less = base.isEmpty() ? 0 : new Spread(base).median();
      return new Spread(job.stream().map(value -> value - less).toList());
    }

    /** The costs of the runs of one job. */
    private static final class Series {
      private final List<Double> seconds = new ArrayList<>();
      private final List<Double> cpuSeconds = new ArrayList<>();
      private final List<Double> processCpuSeconds = new ArrayList<>();

      void add(JobCost cost, double ofProcesses) {
        seconds.add(cost.seconds());
        cpuSeconds.add(cost.cpuSeconds());
        processCpuSeconds.add(ofProcesses);
      }
    }
  }
}
