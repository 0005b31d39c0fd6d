package io.weft.spark.feed;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;

/**
 * What one map task wrote.
 *
 * @param map Spark's index of it
 * @param rows by partition
 */
record MapRows(int map, List<Integer> rows) implements Serializable {
  static MapRows of(int map, int... rows) {
    return new MapRows(map, Arrays.stream(rows).boxed().toList());
  }

  int[] byPartition() {
    return rows.stream().mapToInt(Integer::intValue).toArray();
  }
}
