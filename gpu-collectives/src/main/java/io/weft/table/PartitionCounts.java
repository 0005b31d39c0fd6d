package io.weft.table;

import io.weft.memory.Memory;
import java.util.ArrayList;
import java.util.List;

/** What each partition of a table gets, as the device counted it; a copy. Immutable. */
final class PartitionCounts {
  private static final int BAD_PARTITION = 1;

  private final List<TableLayout> layouts;
  private final long[] offsets;

  /**
   * Reads what the device wrote.
   *
   * @param results address of what {@link PartitionScratch#results} says, on the host
   * @throws IllegalStateException when partitions of rows or offsets of strings were wrong
   */
  PartitionCounts(long results, TableLayout table, int partitions) {
    requireSound(Memory.getInt(results), table, partitions);
    long starts = results + PartitionScratch.FAULT_BYTES;
    long strings = starts + 4 * (partitions + 1L);
    layouts = new ArrayList<>(partitions);
    offsets = new long[partitions + 1];
    for (int p = 0; p < partitions; p++) {
      int rows = Memory.getInt(starts + 4L * p + 4) - Memory.getInt(starts + 4L * p);
      long[] stringBytes = new long[table.columns().size()];
      long at = strings + 4L * p;
      for (int c = 0; c < stringBytes.length; c++) {
        if (table.columns().get(c).kind().isString()) {
          stringBytes[c] = Memory.getInt(at);
          at += 4L * partitions;
        }
      }
      TableLayout layout = TableLayout.of(table.columns(), rows, stringBytes);
      layouts.add(layout);
      offsets[p + 1] = offsets[p] + layout.bytes();
    }
  }

  private static void requireSound(int faults, TableLayout table, int partitions) {
    if ((faults & BAD_PARTITION) != 0) {
      throw new IllegalStateException(
          "a row of " + table + " is in a partition that is not 0 to " + (partitions - 1));
    }
    if (faults != 0) {
      throw new IllegalStateException(
          "the offsets of strings of "
              + table
              + " go backwards, or beyond their bytes: the table is broken");
    }
  }

  List<TableLayout> layouts() {
    return layouts;
  }

  /** Where each partition begins in their run, and the end of the last. */
  long[] offsets() {
    return offsets;
  }

  long bytes() {
    return offsets[layouts.size()];
  }

  /** Writes where each column of each partition begins, column after column. */
  void writePlaces(long to, int columns) {
    int partitions = layouts.size();
    for (int c = 0; c < columns; c++) {
      for (int p = 0; p < partitions; p++) {
        long place = offsets[p] + layouts.get(p).start(c);
        Memory.putLong(to + 8 * ((long) c * partitions + p), place);
      }
    }
  }
}
