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

  /** Java compiles what runs often, and again when it runs another way than before. */
  private static final int LEAST_TRIALS = 5;

  private static final int MOST_TRIALS = 40;
  private static final int TRIALS_WITHOUT_GAIN = 4;
  private static final long TRIAL_NANOS = 20_000_000;
  private static final int LEAST_TRIAL_ITERATIONS = 500;
  private static final long LONGEST_TRIAL_NANOS = 100_000_000;
  private static final long ALL_TRIALS_NANOS = 1_000_000_000;

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
      return new SideFigures(side, new Spread(seconds), new Spread(cpuSeconds), errors, algorithm);
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

  /**
   * Repeats the operation in trials until it gets no faster; then as many as fill a side's share of
   * a round.
   */
  private int iterations(CollectiveSide side, CollectiveCase test)
      throws IOException, InterruptedException {
    long best = Math.max(1, time(side, test, 1).nanos());
    int sinceBest = 0;
    long spent = 0;
    for (int trial = 0; trial < MOST_TRIALS && spent < ALL_TRIALS_NANOS; trial++) {
      int iterations = trialIterations(best);
      long nanos = time(side, test, iterations).nanos();
      spent += nanos;
      long each = Math.max(1, nanos / iterations);
      sinceBest = each < best * 0.95 ? 0 : sinceBest + 1;
      best = Math.min(best, each);
      if (trial + 1 >= LEAST_TRIALS && sinceBest >= TRIALS_WITHOUT_GAIN) {
        break;
      }
    }
    return limited(shareNanos / best);
  }

  /** Enough for the compiler to take notice, unless that takes too long. */
  private static int trialIterations(long nanosEach) {
    long enough = Math.max(TRIAL_NANOS / nanosEach, LEAST_TRIAL_ITERATIONS);
    return limited(Math.min(enough, LONGEST_TRIAL_NANOS / nanosEach));
  }

  private static int limited(long iterations) {
    return (int) Math.max(1, Math.min(MOST_ITERATIONS, iterations));
  }
}
