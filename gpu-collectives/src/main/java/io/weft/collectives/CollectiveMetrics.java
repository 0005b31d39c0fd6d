package io.weft.collectives;

import io.weft.collectives.operation.OperationKind;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What a communicator has done so far, by operation and algorithm. One thread counts at a time, as
 * one operation runs at a time; any may read meanwhile, and gets numbers that may be some
 * operations apart.
 */
public final class CollectiveMetrics {
  /**
   * One line of the table.
   *
   * @param calls operations that ended well
   * @param failures operations that did not
   * @param bytes as nccl-tests counts the size of each operation
   * @param nanos from the start of the operation to its end
   * @param waitNanos the part of it in which this rank waited for another
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
   * Lines added up; the components are those of {@link Line}.
   *
   * @param waitNanos of nanos, the part in which this rank waited for another
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

  /** Has one writer at a time, so there is no need for additions in one step. */
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

  /** All lines from the start, so that counting is two look-ups and no allocation. */
  private final Map<OperationKind, Map<Algorithm, Tally>> tallies =
      new EnumMap<>(OperationKind.class);

  /** All counters at zero. */
  public CollectiveMetrics() {
    for (OperationKind kind : OperationKind.values()) {
      Map<Algorithm, Tally> byAlgorithm = new EnumMap<>(Algorithm.class);
      for (Algorithm algorithm : Algorithm.values()) {
        byAlgorithm.put(algorithm, new Tally());
      }
      tallies.put(kind, byAlgorithm);
    }
  }

  /** Counts an operation that ended well. */
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

  /** The lines of what has run, by operation, then algorithm. */
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

  /** What ran with one algorithm, over all operations. */
  public Total total(Algorithm algorithm) {
    Total total = new Total(0, 0, 0, 0, 0);
    for (Line line : lines()) {
      if (line.algorithm() == algorithm) {
        total = total.plus(line);
      }
    }
    return total;
  }

  /** Operations of one kind that ended well, over all algorithms. */
  public long calls(OperationKind kind) {
    return lines().stream().filter(line -> line.kind() == kind).mapToLong(Line::calls).sum();
  }
}
