package io.weft.spark.collectives;

import io.weft.collectives.Algorithm;
import io.weft.collectives.CollectiveMetrics.Line;
import io.weft.collectives.GpuBufferCounters;
import io.weft.collectives.OperationKind;
import io.weft.collectives.symmetric.CollectiveMemoryCache.CacheStatistics;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;

/**
 * A snapshot of the counters of an executor's collectives. Immutable.
 *
 * @param opened communicators since the executor's start
 * @param open communicators that are open now
 * @param lines by operation and algorithm
 * @param memory symmetric memory of communicators, also between stages
 * @param gpu memory of the GPU for communicators, also between stages
 */
public record CollectiveStatistics(
    long opened, long open, List<Line> lines, CacheStatistics memory, GpuBufferCounters gpu) {
  /** The key of a sum. */
  record Key(OperationKind kind, Algorithm algorithm) {}

  public CollectiveStatistics {
    lines = List.copyOf(lines);
  }

  /** The sum of one figure over all operations and algorithms. */
  public long sum(ToLongFunction<Line> figure) {
    return lines.stream().mapToLong(figure).sum();
  }

  /** The sum of one figure over all operations of one algorithm. */
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
