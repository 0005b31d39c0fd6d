package io.weft.spark.feed;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;

/**
 * What one attempt of a map task wrote.
 *
 * @param map Spark's index of the task
 * @param mapId Spark's id of its output, another one for each attempt
 * @param rows by partition
 * @param obstacle why rows of a feed between GPUs lie on the host; empty where they lie as asked
 */
record MapRows(int map, long mapId, List<Integer> rows, String obstacle) implements Serializable {
  /** For an output that is not registered, or not any more. */
  static final long UNREGISTERED = -1;

  static MapRows of(int map, long mapId, int... rows) {
    return new MapRows(map, mapId, Arrays.stream(rows).boxed().toList(), "");
  }

  /** The same, of rows that lie on the host though they were to lie on a GPU. */
  MapRows onHost(String why) {
    return new MapRows(map, mapId, rows, why);
  }

  /**
   * Rows by map task and partition, as the outputs have them that readers will find. Spark runs a
   * map task twice where it speculates, or gives up a stage's attempt whose tasks go on; both may
   * report, in any order, and only one of the outputs is registered.
   *
   * @param reports of all attempts
   * @param registered each map task's output; where there is none, as its executor was just lost,
   *     the last report stands in for what the next attempt is to write
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
