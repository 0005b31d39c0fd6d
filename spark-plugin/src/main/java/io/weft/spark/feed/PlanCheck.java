package io.weft.spark.feed;

import java.util.Set;

/**
 * Holds what a rank finds against what was planned. A map task that is run again over input whose
 * order changes may write other numbers of rows than its first attempt, which the plan is made of.
 * Stateless but for the plan.
 */
final class PlanCheck {
  private final FeedPlan plan;

  PlanCheck(FeedPlan plan) {
    this.plan = plan;
  }

  /**
   * Checks which map tasks wrote to a partition at all. Nobody reads a partition that was planned
   * to be empty, so this is how its rows are noticed.
   *
   * @param maps that did, as Spark's map statuses say
   * @throws IllegalStateException if they are others than planned
   */
  void wroteTo(int partition, Set<Integer> maps) {
    for (int map = 0; map < plan.maps(); map++) {
      int planned = plan.rows(map, partition);
      boolean wrote = maps.contains(map);
      if (wrote != planned > 0) {
        throw other(map, wrote ? "rows" : rows(0), rows(planned), "rank " + partition);
      }
    }
  }

  /**
   * Checks a chunk, whether the rank is to read it or not.
   *
   * @throws IllegalStateException if it has not the planned rows
   */
  void chunk(int map, int partition, int chunk, int found) {
    int planned = plan.chunkRows(map, partition, chunk);
    if (found != planned) {
      throw other(map, rows(found), rows(planned), name(partition, chunk));
    }
  }

  /**
   * Checks that a map task's partition has no chunks but those that were seen.
   *
   * @throws IllegalStateException if it was planned to have more
   */
  void end(int map, int partition, int chunks) {
    chunk(map, partition, chunks, 0);
  }

  /**
   * Checks all rows of a partition.
   *
   * @throws IllegalStateException if they are not as many as planned
   */
  void partition(int map, int partition, int found) {
    int planned = plan.rows(map, partition);
    if (found != planned) {
      throw other(map, rows(found), rows(planned), "rank " + partition);
    }
  }

  private static String name(int partition, int chunk) {
    return "chunk " + chunk + " of rank " + partition;
  }

  private static String rows(int count) {
    return count == 0 ? "nothing" : count == 1 ? "1 row" : count + " rows";
  }

  private static IllegalStateException other(int map, String found, String planned, String where) {
    return new IllegalStateException(
        ("map task %d wrote %s in place of %s to %s when it was run again:"
                + " the data of a feed must not depend on the order of unordered input")
            .formatted(map, found, planned, where));
  }
}
