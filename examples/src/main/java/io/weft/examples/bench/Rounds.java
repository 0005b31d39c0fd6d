package io.weft.examples.bench;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.jobs.JobCost;
import io.weft.examples.jobs.LookAtExecutors;
import io.weft.examples.jobs.Settle;
import io.weft.examples.measure.CopySpeed;
import io.weft.examples.measure.Quiet;
import io.weft.examples.side.SideException;
import io.weft.examples.side.SideProcess;
import io.weft.examples.terminal.Progress;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Measures subjects in rounds: in each, every side has its turn, and both the side that begins and
 * the one that comes before another change, so that a drift of the machine, and what a side leaves
 * behind, fall on all of them.
 */
final class Rounds {
  private static final int FEWEST_RUNS = 2;
  private static final int COPY_THREADS = 2;

  private final List<SideProcess> sides;
  private final int runs;
  private final Progress progress;

  Rounds(List<SideProcess> sides, int runs, Progress progress) {
    this.sides = List.copyOf(sides);
    this.runs = runs;
    this.progress = progress;
  }

  /** Measures one subject for about so long. */
  WorkloadResult measure(Subject subject, Duration share) throws IOException, InterruptedException {
    long start = System.nanoTime();
    double copySpeed = CopySpeed.measure(COPY_THREADS);
    Map<SideProcess, Samples> samples = new LinkedHashMap<>();
    Set<String> results = new HashSet<>();
    for (SideProcess side : sides) {
      progress.detail(subject.title() + ", warming up " + side.options().label());
      samples.put(side, new Samples(side.options()));
      results.add(warmUp(subject, side, samples.get(side)));
    }
    for (int run = 0; run < runs; run++) {
      if (run >= FEWEST_RUNS && spent(start, run + 1, share)) {
        break;
      }
      round(subject, run, samples);
    }
    return new WorkloadResult(
        subject.id(),
        subject.title(),
        subject.base().isEmpty(),
        subject.rows(),
        subject.dataBytes(),
        copySpeed,
        results.size() == 1,
        samples.values().stream().map(Samples::result).toList());
  }

  /** Whether another round, with the warm-up as one of those before, would end too late. */
  private static boolean spent(long start, int rounds, Duration share) {
    double nanos = System.nanoTime() - start;
    return nanos * (rounds + 1) / rounds > share.toNanos();
  }

  private static String warmUp(Subject subject, SideProcess side, Samples samples)
      throws SideException, InterruptedException {
    ExecutorTotals before = side.call(new LookAtExecutors());
    String result = side.call(subject.check());
    if (subject.base().isPresent()) {
      side.call(subject.base().get());
    }
    side.call(subject.job());
    samples.warmUp(side.call(new LookAtExecutors()).since(before));
    return result;
  }

  private void round(Subject subject, int run, Map<SideProcess, Samples> samples)
      throws IOException, InterruptedException {
    List<SideProcess> order = new ArrayList<>(sides);
    Collections.rotate(order, run / 2);
    if (run % 2 == 1) {
      Collections.reverse(order);
    }
    for (SideProcess side : order) {
      progress.detail(
          subject.title() + ", run " + (run + 1) + " of " + runs + ", " + side.options().label());
      if (subject.base().isPresent()) {
        settle(side);
        samples.get(side).base(side.call(subject.base().get()));
      }
      settle(side);
      ExecutorTotals before = side.call(new LookAtExecutors());
      JobCost cost = side.call(subject.job());
      samples.get(side).job(cost, side.call(new LookAtExecutors()).since(before));
    }
  }

  /** Neither the job nor its base pays for what came before. */
  private static void settle(SideProcess side) throws IOException, InterruptedException {
    side.call(new Settle());
    Quiet.await();
  }
}
