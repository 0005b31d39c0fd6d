package io.weft.spark.collectives;

import io.weft.collectives.Algorithm;
import io.weft.collectives.CollectiveMetrics.Line;
import io.weft.collectives.operation.OperationKind;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;

/**
 * What the collectives of an executor did up to one moment. Immutable.
 *
 * @param opened communicators since the executor's start
 * @param open communicators now
 * @param lines by operation and algorithm
 */
public record CollectiveStatistics(long opened, long open, List<Line> lines) {
  /** What lines are added up by. */
  record Key(OperationKind kind, Algorithm algorithm) {}

  public CollectiveStatistics {
    lines = List.copyOf(lines);
  }

  /** One figure over all operations and algorithms. */
  public long sum(ToLongFunction<Line> figure) {
    return lines.stream().mapToLong(figure).sum();
  }

  /** One figure over all operations that one algorithm carried out. */
  public long sum(Algorithm algorithm, ToLongFunction<Line> figure) {
    return lines.stream().filter(line -> line.algorithm() == algorithm).mapToLong(figure).sum();
  }

  static Map<Key, Line> sum(Map<Key, Line> before, List<Line> more) {
    Map<Key, Line> sum = new HashMap<>(before);
    for (Line line : more) {
      sum.merge(new Key(line.kind(), line.algorithm()), line, CollectiveStatistics::add);
    }
    return sum;
  }

  private static Line add(Line a, Line b) {
    return new Line(
        a.kind(),
        a.algorithm(),
        a.calls() + b.calls(),
        a.failures() + b.failures(),
        a.bytes() + b.bytes(),
        a.nanos() + b.nanos(),
        a.waitNanos() + b.waitNanos());
  }
}
