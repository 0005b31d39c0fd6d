package io.weft.spark.feed;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;

/**
 * The report of one attempt of a map task about its output.
 *
 * @param map Spark's index of the task
 * @param mapId Spark's id of its output, unique for each attempt
 * @param rows by partition
 * @param obstacle why rows of a feed between GPUs are on the host; empty if they are where
 *     requested
 */
record MapRows(int map, long mapId, List<Integer> rows, String obstacle) implements Serializable {
  /** The id of an output that is not, or no longer, registered. */
  static final long UNREGISTERED = -1;

  static MapRows of(int map, long mapId, int... rows) {
    return new MapRows(map, mapId, Arrays.stream(rows).boxed().toList(), "");
  }

  /** Returns the same report for rows that had to stay on the host instead of a GPU. */
  MapRows onHost(String why) {
    return new MapRows(map, mapId, rows, why);
  }

  /**
   * Returns the rows by map task and partition of the registered outputs, which are the ones that
   * readers find. Spark runs a map task twice if it speculates, or if it gives up a stage attempt
   * whose tasks continue. Both attempts may report, in any order, but only one output is
   * registered.
   *
   * @param reports of all attempts
   * @param registered output id of each map task; if there is none because its executor was just
   *     lost, the last report stands in for the next attempt
   * @throws IllegalStateException if a map task's output has no report
   */
  static int[][] written(List<MapRows> reports, long... registered) {
    int[][] rows = new int[registered.length][];
    for (MapRows report : reports) {
      long wanted = registered[report.map()];
      if (wanted == UNREGISTERED || wanted == report.mapId()) {
        rows[report.map()] = report.rows().stream().mapToInt(Integer::intValue).toArray();
      }
    }
    for (int map = 0; map < rows.length; map++) {
      if (rows[map] == null) {
        throw new IllegalStateException(
            "map task %d of a feed did not report the rows of its output %d"
                .formatted(map, registered[map]));
      }
    }
    return rows;
  }
}
