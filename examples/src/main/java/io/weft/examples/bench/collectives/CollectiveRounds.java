package io.weft.examples.bench.collectives;

import io.weft.examples.measure.Spread;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Measures one case on all sides in turn: in each round every side repeats the operation for a
 * while, and the side that begins changes, so that a drift of the machine falls on all of them. One
 * thread.
 */
final class CollectiveRounds {
  private static final int MOST_ITERATIONS = 50_000;
  private static final long TRIAL_NANOS = 5_000_000;

  private final List<CollectiveSide> sides;
  private final int runs;
  private final long shareNanos;

  CollectiveRounds(List<CollectiveSide> sides, int runs, long shareNanos) {
    this.sides = List.copyOf(sides);
    this.runs = runs;
    this.shareNanos = shareNanos;
  }

  /** One side's samples of a case. */
  private static final class Samples {
    private final long errors;
    private final String algorithm;
    private int iterations = 1;
    private final List<Double> seconds = new ArrayList<>();
    private final List<Double> cpuSeconds = new ArrayList<>();

    private Samples(Timing checked) {
      this.errors = checked.errors();
      this.algorithm = checked.algorithm();
    }

    private void add(Timing timing) {
      seconds.add(timing.nanos() / 1e9 / iterations);
      cpuSeconds.add(timing.cpuNanos() / 1e9 / iterations);
    }

    private SideFigures figures(String side) {
      return new SideFigures(
          side, new Spread(seconds), new Spread(cpuSeconds), errors, algorithm);
    }
  }

  CaseResult measure(CollectiveCase test) throws IOException, InterruptedException {
    Map<CollectiveSide, Samples> samples = new LinkedHashMap<>();
    for (CollectiveSide side : sides) {
      Optional<Timing> checked = side.run(test, true, 1);
      if (checked.isPresent()) {
        samples.put(side, new Samples(checked.get()));
        samples.get(side).iterations = iterations(side, test);
      }
    }
    for (int run = 0; run < runs; run++) {
      List<CollectiveSide> order = new ArrayList<>(samples.keySet());
      Collections.rotate(order, run);
      for (CollectiveSide side : order) {
        Samples own = samples.get(side);
        own.add(time(side, test, own.iterations));
      }
    }
    List<SideFigures> figures = new ArrayList<>();
    samples.forEach((side, own) -> figures.add(own.figures(side.name())));
    return new CaseResult(test, figures);
  }

  private static Timing time(CollectiveSide side, CollectiveCase test, int iterations)
      throws IOException, InterruptedException {
    return side.run(test, false, iterations)
        .orElseThrow(() -> new IOException(side.name() + " no longer has " + test));
  }

  /** As many as fill a side's share of a round, found by two trials. */
  private int iterations(CollectiveSide side, CollectiveCase test)
      throws IOException, InterruptedException {
    long once = Math.max(1, time(side, test, 1).nanos());
    int trial = limited(TRIAL_NANOS / once);
    long each = Math.max(1, time(side, test, trial).nanos() / trial);
    return limited(shareNanos / each);
  }

  private static int limited(long iterations) {
    return (int) Math.max(1, Math.min(MOST_ITERATIONS, iterations));
  }
}
