package io.weft.examples.bench;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.jobs.JobCost;
import io.weft.examples.measure.Spread;
import io.weft.examples.side.SideOptions;
import java.util.ArrayList;
import java.util.List;

/** The runs of one side in one workload, as they come in. Not thread-safe. */
final class Samples {
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

  SideResult result() {
    ExecutorTotals all = moved.stream().reduce(ExecutorTotals.NONE, ExecutorTotals::plus);
    Spread base = bases.isEmpty() ? null : spread(bases, 0, true);
    double baseSeconds = bases.isEmpty() ? 0 : base.median();
    double baseCpu = bases.isEmpty() ? 0 : spread(bases, 0, false).median();
    ExecutorTotals last = moved.get(moved.size() - 1);
    return new SideResult(
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
