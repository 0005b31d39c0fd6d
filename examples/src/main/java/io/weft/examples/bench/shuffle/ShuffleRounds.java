package io.weft.examples.bench.shuffle;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.jobs.JobCost;
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
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Measures subjects in alternating rounds, after a warm-up of each side. For one thread. */
final class ShuffleRounds {
  private static final int FEWEST_RUNS = 2;
  private static final int COPY_THREADS = 2;

  private final List<SideProcess> sides;
  private final int runs;
  private final Progress progress;

  ShuffleRounds(List<SideProcess> sides, int runs, Progress progress) {
    this.sides = List.copyOf(sides);
    this.runs = runs;
    this.progress = progress;
  }

  /**
   * Measures one subject.
   *
   * @param share the time for all of its rounds; two rounds run in any case
   */
  ShuffleReport.WorkloadResult measure(ShuffleBench.Subject subject, Duration share)
      throws IOException, InterruptedException {
    long start = System.nanoTime();
    double copySpeed = CopySpeed.measure(COPY_THREADS);
    Map<SideProcess, Samples> samples = new LinkedHashMap<>();
    Set<String> results = new HashSet<>();
    for (SideProcess side : sides) {
      progress.detail(subject.title() + ", warming up " + side.options().label());
      samples.put(side, new Samples(side.options()));
      results.add(warmUp(subject, side, samples.get(side)));
    }
    new Rounds(0, runs)
        .runWhile(
            sides,
            run -> run < FEWEST_RUNS || !spent(start, run + 1, share),
            (side, run) -> runOnce(subject, run, side, samples.get(side)));
    return new ShuffleReport.WorkloadResult(
        subject.id(),
        subject.title(),
        subject.base().isEmpty(),
        subject.rows(),
        subject.dataBytes(),
        copySpeed,
        results.size() == 1,
        samples.values().stream().map(Samples::result).toList());
  }

  /**
   * Whether another round would end too late.
   *
   * @param rounds that have run, with the warm-up
   */
  private static boolean spent(long start, int rounds, Duration share) {
    double nanos = System.nanoTime() - start;
    return nanos * (rounds + 1) / rounds > share.toNanos();
  }

  private static String warmUp(ShuffleBench.Subject subject, SideProcess side, Samples samples)
      throws SideException, InterruptedException {
    ExecutorTotals before = side.call(new ExecutorTotals.Collect());
    String result = side.call(subject.check());
    if (subject.base().isPresent()) {
      side.call(subject.base().get());
    }
    side.call(subject.job());
    samples.warmUp(side.call(new ExecutorTotals.Collect()).since(before));
    return result;
  }

  private void runOnce(ShuffleBench.Subject subject, int run, SideProcess side, Samples samples)
      throws IOException, InterruptedException {
    progress.detail(
        subject.title() + ", run " + (run + 1) + " of " + runs + ", " + side.options().label());
    if (subject.base().isPresent()) {
      settle(side);
      samples.base(side.call(subject.base().get()));
    }
    settle(side);
    ExecutorTotals before = side.call(new ExecutorTotals.Collect());
    JobCost cost = side.call(subject.job());
    samples.job(cost, side.call(new ExecutorTotals.Collect()).since(before));
  }

  /** Waits for the leftovers of earlier jobs, so that the next job does not pay for them. */
  private static void settle(SideProcess side) throws IOException, InterruptedException {
    side.call(new Settle());
    Quiet.await();
  }

  /** Collects the runs of one side in one workload. Not thread-safe. */
  static final class Samples {
    private final SideOptions side;
    private final List<JobCost> bases = new ArrayList<>();
    private final List<JobCost> jobs = new ArrayList<>();
    private final List<ExecutorTotals> moved = new ArrayList<>();
    private ExecutorTotals warmUp = ExecutorTotals.NONE;

    Samples(SideOptions side) {
      this.side = side;
    }

    void warmUp(ExecutorTotals totals) {
      warmUp = totals;
    }

    void base(JobCost cost) {
      bases.add(cost);
    }

    void job(JobCost cost, ExecutorTotals totals) {
      jobs.add(cost);
      moved.add(totals);
    }

    ShuffleReport.SideResult result() {
      ExecutorTotals all = moved.stream().reduce(ExecutorTotals.NONE, ExecutorTotals::plus);
      Spread base = bases.isEmpty() ? null : spread(bases, 0, true);
      double baseSeconds = bases.isEmpty() ? 0 : base.median();
      double baseCpu = bases.isEmpty() ? 0 : spread(bases, 0, false).median();
      ExecutorTotals last = moved.get(moved.size() - 1);
      return new ShuffleReport.SideResult(
          side.name(),
          side.label(),
          base,
          spread(jobs, 0, true),
          spread(jobs, baseSeconds, true),
          spread(jobs, baseCpu, false),
          new Spread(moved.stream().map(ExecutorTotals::cpuSeconds).toList()).median(),
          jobs.get(jobs.size() - 1).shuffleBytes(),
          last.ownBytes(),
          last.sameHostBytes(),
          last.networkBytes(),
          all.spilledBytes(),
          warmUp.freshBytes(),
          all.freshBytes());
    }

    private static Spread spread(List<JobCost> costs, double less, boolean wall) {
      return new Spread(
          costs.stream().map(cost -> (wall ? cost.seconds() : cost.cpuSeconds()) - less).toList());
    }
  }
}
