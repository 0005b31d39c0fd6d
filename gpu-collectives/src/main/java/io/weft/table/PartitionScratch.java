package io.weft.table;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;

/**
 * Device memory for the partitioning of one table: where in it everything lies. Addresses are those
 * of the moment it was taken; what uses them keeps it by {@link #usedUntil}. Immutable;
 * thread-safe.
 */
final class PartitionScratch implements AutoCloseable {
  private static final long ALIGNMENT = 256;
  private static final int DIGIT_BITS = 8;

  /** A word that says what was wrong, and one of nothing. */
  static final int FAULT_BYTES = 8;

  private final int partitions;
  private final int passes;
  private final long hashes;
  private final long positions;
  private final long[] keys = new long[2];
  private final long[] orders = new long[2];
  private final long counts;
  private final long results;
  private final long resultBytes;
  private final long[] lengths;
  private final long sums;
  private final CudaMemory memory;
  private final long address;
  private long end;

  /**
   * Takes the memory.
   *
   * @param strings how many columns have strings
   * @param isHashed whether the partitions of rows are to be put here
   */
  PartitionScratch(CudaMemoryPool device, int rows, int partitions, int strings, boolean isHashed) {
    this.partitions = partitions;
    this.passes = passes(partitions);
    long perRow = 4L * rows;
    long digits = CountingKernels.DIGITS * Launches.tiles(rows);
    hashes = next(isHashed ? perRow : 0);
    positions = next(perRow);
    for (int i = 0; i < 2; i++) {
      keys[i] = next(i < passes ? perRow : 0);
      orders[i] = next(i < passes ? perRow : 0);
    }
    counts = next(4 * digits);
    resultBytes = FAULT_BYTES + 4 * (partitions + 1L) + 4L * strings * partitions;
    results = next(resultBytes);
    lengths = new long[strings];
    for (int i = 0; i < strings; i++) {
      lengths[i] = next(perRow + 4);
    }
    sums = next(4 * Launches.tiles(Math.max(digits, rows + 1L)));
    memory = device.take(end);
    address = memory.address();
  }

  private long next(long bytes) {
    long at = end;
    end += (bytes + ALIGNMENT - 1) & -ALIGNMENT;
    return at;
  }

  /** Digits of the largest partition. */
  private static int passes(int partitions) {
    int bits = Integer.SIZE - Integer.numberOfLeadingZeros(partitions - 1);
    return Math.max(1, (bits + DIGIT_BITS - 1) / DIGIT_BITS);
  }

  /** Passes of the sort. */
  int passes() {
    return passes;
  }

  /** The partition of each row, where it is hashed here. */
  long hashes() {
    return address + hashes;
  }

  /** Where each row goes among the sorted ones. */
  long positions() {
    return address + positions;
  }

  /** The sorted partitions after a pass. */
  long keysAfter(int pass) {
    return address + keys[pass & 1];
  }

  /** The sorted rows after a pass. */
  long orderAfter(int pass) {
    return address + orders[pass & 1];
  }

  /** The sorted partitions. */
  long sortedKeys() {
    return keysAfter(passes - 1);
  }

  /** The sorted rows. */
  long sortedOrder() {
    return orderAfter(passes - 1);
  }

  /** Digits of each tile. */
  long counts() {
    return address + counts;
  }

  /** Faults, then starts, then the bytes of each column of strings: what the host reads. */
  long results() {
    return address + results;
  }

  long resultBytes() {
    return resultBytes;
  }

  /** The first sorted row of each partition, and the end of the last. */
  long starts() {
    return results() + FAULT_BYTES;
  }

  /** The bytes of strings of each partition. */
  long stringBytes(int string) {
    return starts() + 4 * (partitions + 1L) + 4L * string * partitions;
  }

  /** The lengths of strings of sorted rows, then the sums of those before each. */
  long lengths(int string) {
    return address + lengths[string];
  }

  /** Sums of tiles. */
  long sums() {
    return address + sums;
  }

  void usedUntil(Event event) {
    memory.usedUntil(event);
  }

  @Override
  public void close() {
    memory.close();
  }
}
