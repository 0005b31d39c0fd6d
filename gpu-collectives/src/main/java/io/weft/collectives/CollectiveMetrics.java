package io.weft.collectives;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Counters of a communicator by operation and algorithm. One thread at a time writes them, because
 * one operation runs at a time. Any thread may read them; the numbers it gets may be a few
 * operations apart.
 */
public final class CollectiveMetrics {
  /**
   * One line of the table.
   *
   * @param calls operations that succeeded
   * @param failures operations that failed
   * @param bytes as nccl-tests counts the size of each operation
   * @param nanos from the start of the operation to its end
   * @param waitNanos the part of {@code nanos} in which this rank waited for another
   */
  public record Line(
      OperationKind kind,
      Algorithm algorithm,
      long calls,
      long failures,
      long bytes,
      long nanos,
      long waitNanos) {}

  /**
   * A sum of lines; the components are those of {@link Line}.
   *
   * @param waitNanos the part of {@code nanos} in which this rank waited for another
   */
  public record Total(long calls, long failures, long bytes, long nanos, long waitNanos) {
    private Total plus(Line line) {
      return new Total(
          calls + line.calls(),
          failures + line.failures(),
          bytes + line.bytes(),
          nanos + line.nanos(),
          waitNanos + line.waitNanos());
    }
  }

  /** Has one writer at a time, so additions need not be atomic. */
  private static final class Tally {
    private final AtomicLong calls = new AtomicLong();
    private final AtomicLong failures = new AtomicLong();
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicLong nanos = new AtomicLong();
    private final AtomicLong waitNanos = new AtomicLong();

    private static void add(AtomicLong sum, long more) {
      sum.setRelease(sum.getPlain() + more);
    }

    private Line line(OperationKind kind, Algorithm algorithm) {
      return new Line(
          kind, algorithm, calls.get(), failures.get(), bytes.get(), nanos.get(), waitNanos.get());
    }
  }

  /** All entries exist from the start, so counting is two look-ups and no allocation. */
  private final Map<OperationKind, Map<Algorithm, Tally>> tallies =
      new EnumMap<>(OperationKind.class);

  /** Sets all counters to zero. */
  public CollectiveMetrics() {
    for (OperationKind kind : OperationKind.values()) {
      Map<Algorithm, Tally> byAlgorithm = new EnumMap<>(Algorithm.class);
      for (Algorithm algorithm : Algorithm.values()) {
        byAlgorithm.put(algorithm, new Tally());
      }
      tallies.put(kind, byAlgorithm);
    }
  }

  /** Counts an operation that succeeded. */
  public void count(
      OperationKind kind, Algorithm algorithm, long bytes, long nanos, long waitNanos) {
    Tally tally = tally(kind, algorithm);
    Tally.add(tally.calls, 1);
    Tally.add(tally.bytes, bytes);
    Tally.add(tally.nanos, nanos);
    Tally.add(tally.waitNanos, waitNanos);
  }

  /** Counts an operation that failed, as {@link Algorithm#UNFINISHED}. */
  public void countFailure(OperationKind kind, long nanos, long waitNanos) {
    Tally tally = tally(kind, Algorithm.UNFINISHED);
    Tally.add(tally.failures, 1);
    Tally.add(tally.nanos, nanos);
    Tally.add(tally.waitNanos, waitNanos);
  }

  private Tally tally(OperationKind kind, Algorithm algorithm) {
    return tallies.get(kind).get(algorithm);
  }

  /** The lines of the operations that ran, by operation, then algorithm. */
  public List<Line> lines() {
    List<Line> lines = new ArrayList<>();
    tallies.forEach(
        (kind, byAlgorithm) ->
            byAlgorithm.forEach(
                (algorithm, tally) -> {
                  Line line = tally.line(kind, algorithm);
                  if (line.calls() + line.failures() > 0) {
                    lines.add(line);
                  }
                }));
    return lines;
  }

  /** The sum over all operations that ran with one algorithm. */
  public Total total(Algorithm algorithm) {
    Total total = new Total(0, 0, 0, 0, 0);
    for (Line line : lines()) {
      if (line.algorithm() == algorithm) {
        total = total.plus(line);
      }
    }
    return total;
  }

  /** The number of operations of one kind that succeeded, over all algorithms. */
  public long calls(OperationKind kind) {
    return lines().stream().filter(line -> line.kind() == kind).mapToLong(Line::calls).sum();
  }
}
