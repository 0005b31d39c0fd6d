package io.weft.spark.feed;

import java.util.Set;

/**
 * Compares the data that a rank finds with the plan. If a map task is run again over input whose
 * order changes, it may write other row counts than its first attempt, on which the plan is based.
 * Holds no state except the plan.
 */
final class PlanCheck {
  private final FeedPlan plan;

  PlanCheck(FeedPlan plan) {
    this.plan = plan;
  }

  /**
   * Checks which map tasks wrote to a partition. A partition that was planned to be empty is never
   * read, so only this check detects unexpected rows in it.
   *
   * @param maps that wrote to it, according to Spark's map statuses
   * @throws IllegalStateException if they differ from the plan
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
   * Checks a chunk, even one that the rank does not read.
   *
   * @throws IllegalStateException if it does not have the planned rows
   */
  void chunk(int map, int partition, int chunk, int found) {
    int planned = plan.chunkRows(map, partition, chunk);
    if (found != planned) {
      throw other(map, rows(found), rows(planned), name(partition, chunk));
    }
  }

  /**
   * Checks that a map task's partition has no further chunks.
   *
   * @throws IllegalStateException if more were planned
   */
  void end(int map, int partition, int chunks) {
    chunk(map, partition, chunks, 0);
  }

  /**
   * Checks the number of rows of a partition.
   *
   * @throws IllegalStateException if it differs from the plan
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
        ("map task %d wrote %s instead of %s to %s when it was run again:"
                + " the data of a feed must not depend on the order of unordered input")
            .formatted(map, found, planned, where));
  }
}
