package io.weft.spark.columns;

import java.util.Arrays;

/**
 * Rows of a vector in the order of their partitions: groups of positions, one group per partition
 * with rows. It lists either rows, or runs of contiguous rows, which can be copied in bulk. Reused;
 * not thread-safe.
 */
final class Selection {
  private int groups;
  private int[] partitions = new int[16];
  private int[] from = new int[17];

  private boolean hasRuns;
  private int runs;
  private int[] runFrom = new int[17];
  private int[] runStart = new int[16];
  private int[] runLength = new int[16];

  private int count;
  private boolean hasRows;
  private int[] rows = new int[16];

  private int[] counts = new int[0];

  /** Number of partitions with rows. */
  int groups() {
    return groups;
  }

  int partition(int group) {
    return partitions[group];
  }

  /** First position of a group. For the index after the last group: the number of positions. */
  int from(int group) {
    return from[group];
  }

  /** Number of positions. */
  int count() {
    return count;
  }

  /** Whether it lists runs. */
  boolean hasRuns() {
    return hasRuns;
  }

  /** First run of a group. For the index after the last group: the number of runs. */
  int runFrom(int group) {
    return runFrom[group];
  }

  int runStart(int run) {
    return runStart[run];
  }

  int runLength(int run) {
    return runLength[run];
  }

  /** The row at each position. */
  int[] rows() {
    if (!hasRows) {
      expand();
    }
    return rows;
  }

  /** Sorts rows by partition with a stable counting sort. */
  void byPartition(int[] ids, int start, int end, int allPartitions) {
    clear();
    hasRows = true;
    if (counts.length < allPartitions) {
      counts = new int[allPartitions];
    }
    for (int row = start; row < end; row++) {
      if (counts[ids[row]]++ == 0) {
        addGroup(ids[row]);
      }
    }
    for (int group = 0; group < groups; group++) {
      from[group + 1] = from[group] + counts[partitions[group]];
      counts[partitions[group]] = from[group];
    }
    count = from[groups];
    rows = room(rows, count);
    for (int row = start; row < end; row++) {
      rows[counts[ids[row]]++] = row;
    }
    for (int group = 0; group < groups; group++) {
      counts[partitions[group]] = 0;
    }
  }

  /** Selects contiguous rows for one partition. */
  void run(int partition, int start, int length) {
    beginRuns();
    beginGroup(partition);
    addRun(start, length);
  }

  /** Starts an empty selection of runs. */
  void beginRuns() {
    clear();
    hasRuns = true;
  }

  /** Starts the next partition's group. */
  void beginGroup(int partition) {
    addGroup(partition);
    from[groups] = count;
    runFrom = room(runFrom, groups + 1);
    runFrom[groups] = runs;
  }

  /** Adds contiguous rows to the current group. */
  void addRun(int start, int length) {
    if (length == 0) {
      return;
    }
    runStart = room(runStart, runs + 1);
    runLength = room(runLength, runs + 1);
    runStart[runs] = start;
    runLength[runs++] = length;
    count = BatchTooLargeException.add(count, length);
    from[groups] = count;
    runFrom[groups] = runs;
  }

  /**
   * Adds the runs of some values to the current group.
   *
   * @param starts first row of each value's run, by value
   * @param lengths rows of each value's run, by value
   * @param values the values at positions {@code first} (inclusive) to {@code end} (exclusive)
   * @param nulls 1 for a value without a run, by position; null if all values have one
   */
  void addRuns(int[] starts, int[] lengths, int[] values, int first, int end, byte[] nulls) {
    runStart = room(runStart, runs + end - first);
    runLength = room(runLength, runs + end - first);
    int added = runs;
    long sum = 0;
    for (int i = first; i < end; i++) {
      int length = nulls == null || nulls[i] == 0 ? lengths[values[i]] : 0;
      if (length > 0) {
        runStart[added] = starts[values[i]];
        runLength[added++] = length;
        sum += length;
      }
    }
    runs = added;
    count = BatchTooLargeException.add(count, sum);
    from[groups] = count;
    runFrom[groups] = runs;
  }

  private void clear() {
    groups = 0;
    count = 0;
    runs = 0;
    hasRows = false;
    hasRuns = false;
  }

  private void addGroup(int partition) {
    partitions = room(partitions, groups + 1);
    from = room(from, groups + 2);
    partitions[groups++] = partition;
  }

  private void expand() {
    rows = room(rows, count);
    int position = 0;
    for (int run = 0; run < runs; run++) {
      int row = runStart[run];
      for (int end = position + runLength[run]; position < end; position++) {
        rows[position] = row++;
      }
    }
    hasRows = true;
  }

  private static int[] room(int[] array, int length) {
    return length <= array.length
        ? array
        : Arrays.copyOf(array, Math.max(length, array.length * 2));
  }
}
