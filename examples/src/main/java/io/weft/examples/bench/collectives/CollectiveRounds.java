package io.weft.examples.bench.collectives;

import io.weft.examples.measure.Rounds;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Measures one case on all sides in alternating blocks. In each run every side repeats the
 * operation for a share of time, split into short blocks: if another program holds a processor for
 * some milliseconds, it spoils a few blocks, and the median leaves them out. For one thread.
 */
final class CollectiveRounds {
  private static final int MAX_ITERATIONS = 50_000;
  private static final int MAX_BLOCKS = 8;

  /** With fewer operations in a block, the different starts of ranks would count. */
  private static final int LEAST_BLOCK_ITERATIONS = 8;

  /** The compiler of the JVM needs several trials: it compiles hot code more than once. */
  private static final int LEAST_TRIALS = 5;

  /**
   * Before this many short operations the JVM may not have compiled them with its best compiler.
   */
  private static final int LEAST_TRIED = 20_000;

  private static final int TRIALS_WITHOUT_GAIN = 4;
  private static final long TRIAL_NANOS = 20_000_000;
  private static final int LEAST_TRIAL_ITERATIONS = 500;
  private static final long LONGEST_TRIAL_NANOS = 100_000_000;
  private static final long ALL_TRIALS_NANOS = 2_000_000_000;

  /**
   * The same for short operations: at first, ranks that take turns on processors also take turns
   * with the compiler.
   */
  private static final long ALL_SHORT_TRIALS_NANOS = 8_000_000_000L;

  private static final long SHORT_NANOS = 200_000;

  private final List<CollectiveSide> sides;
  private final int runs;
  private final long shareNanos;

  /** Whether the sides have run what all operations share. */
  private boolean warm;

  CollectiveRounds(List<CollectiveSide> sides, int runs, long shareNanos) {
    this.sides = List.copyOf(sides);
    this.runs = runs;
    this.shareNanos = shareNanos;
  }

  /**
   * Checks the operation on all sides that support it, warms them up, and measures them. The first
   * operation is measured twice, and only the second time counts: at first the JVM still compiles
   * what all operations share.
   */
  CollectivesReport.CaseResult measure(CollectiveCase test)
      throws IOException, InterruptedException {
    if (!warm) {
      warm = true;
      CollectivesReport.CaseResult unused = measureOnce(test);
    }
    return measureOnce(test);
  }

  private CollectivesReport.CaseResult measureOnce(CollectiveCase test)
      throws IOException, InterruptedException {
    Map<String, CollectiveSide.Timing> checks = new HashMap<>();
    Map<CollectiveSide, Long> nanosEach = new LinkedHashMap<>();
    for (CollectiveSide side : sides) {
      Optional<CollectiveSide.Timing> checked = side.run(test, true, 1);
      if (checked.isPresent()) {
        checks.put(side.name(), checked.get());
        nanosEach.put(side, nanosWhenWarm(side, test));
      }
    }
    int blocks = blocks(nanosEach.values());
    List<Rounds.Contestant> contestants = new ArrayList<>();
    nanosEach.forEach(
        (side, nanos) -> {
          int iterations = limited(shareNanos / blocks / nanos);
          contestants.add(
              new Rounds.Contestant(
                  side.name(), () -> cost(time(side, test, iterations), iterations)));
        });
    return new CollectivesReport.CaseResult(
        test,
        new Rounds(0, runs * blocks)
            .measure(contestants).stream()
                .map(figures -> withCheck(figures, checks.get(figures.side())))
                .toList());
  }

  private static Rounds.Cost cost(CollectiveSide.Timing timing, int iterations) {
    return new Rounds.Cost(timing.nanos() / 1e9 / iterations, timing.cpuNanos() / 1e9 / iterations);
  }

  private static CollectivesReport.CaseFigures withCheck(
      Rounds.SideFigures figures, CollectiveSide.Timing checked) {
    return new CollectivesReport.CaseFigures(
        figures.side(),
        figures.seconds(),
        figures.cpuSeconds(),
        checked.errors(),
        checked.algorithm());
  }

  private static CollectiveSide.Timing time(
      CollectiveSide side, CollectiveCase test, int iterations)
      throws IOException, InterruptedException {
    return side.run(test, false, iterations)
        .orElseThrow(() -> new IOException(side.name() + " no longer has " + test));
  }

  /** The blocks of a run, the same for all sides. */
  private int blocks(Collection<Long> nanosEach) {
    long slowest = nanosEach.stream().mapToLong(Long::longValue).max().orElse(1);
    return (int) Math.max(1, Math.min(MAX_BLOCKS, shareNanos / slowest / LEAST_BLOCK_ITERATIONS));
  }

  /** Repeats the operation in trials until it gets no faster, and returns its time then. */
  private long nanosWhenWarm(CollectiveSide side, CollectiveCase test)
      throws IOException, InterruptedException {
    long best = Math.max(1, time(side, test, 1).nanos());
    int sinceBest = 0;
    int tried = 0;
    long spent = 0;
    for (int trial = 0; spent < mostNanos(best); trial++) {
      int iterations = trialIterations(best);
      long nanos = time(side, test, iterations).nanos();
      spent += nanos;
      tried += iterations;
      long each = Math.max(1, nanos / iterations);
      sinceBest = each < best * 0.95 ? 0 : sinceBest + 1;
      best = Math.min(best, each);
      boolean compiled = tried >= LEAST_TRIED || best >= SHORT_NANOS;
      if (trial + 1 >= LEAST_TRIALS && compiled && sinceBest >= TRIALS_WITHOUT_GAIN) {
        break;
      }
    }
    return best;
  }

  private static long mostNanos(long nanosEach) {
    return nanosEach < SHORT_NANOS ? ALL_SHORT_TRIALS_NANOS : ALL_TRIALS_NANOS;
  }

  /** Enough iterations to trigger the compiler, unless they take too long. */
  private static int trialIterations(long nanosEach) {
    long enough = Math.max(TRIAL_NANOS / nanosEach, LEAST_TRIAL_ITERATIONS);
    return limited(Math.min(enough, LONGEST_TRIAL_NANOS / nanosEach));
  }

  private static int limited(long iterations) {
    return (int) Math.max(1, Math.min(MAX_ITERATIONS, iterations));
  }
}
