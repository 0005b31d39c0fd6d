package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.shuffle.device.PartitionKernels.CountingKernels;

/**
 * Temporary device memory to partition one table, and the addresses in it, which are those at
 * creation. A user keeps the memory by {@link #usedUntil}. Immutable; thread-safe.
 */
final class PartitionScratch implements AutoCloseable {
  private static final long ALIGNMENT = 256;
  private static final int DIGIT_BITS = 8;

  /** A word for the fault code, and an unused word. */
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
   * Allocates the memory.
   *
   * @param strings the number of string columns
   * @param isHashed whether the partition numbers of rows are written here
   */
  PartitionScratch(CudaMemoryPool device, int rows, int partitions, int strings, boolean isHashed) {
    this.partitions = partitions;
    this.passes = passes(partitions);
    long perRow = 4L * rows;
    long digits = CountingKernels.DIGITS * KernelLaunches.tiles(rows);
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
    sums = next(4 * KernelLaunches.tiles(Math.max(digits, rows + 1L)));
    memory = device.take(end);
    address = memory.address();
  }

  private long next(long bytes) {
    long at = end;
    end += (bytes + ALIGNMENT - 1) & -ALIGNMENT;
    return at;
  }

  /** The number of digits of the largest partition number. */
  private static int passes(int partitions) {
    int bits = Integer.SIZE - Integer.numberOfLeadingZeros(partitions - 1);
    return Math.max(1, (bits + DIGIT_BITS - 1) / DIGIT_BITS);
  }

  /** The number of passes of the sort. */
  int passes() {
    return passes;
  }

  /** The hashed partition number of each row. */
  long hashes() {
    return address + hashes;
  }

  /** The position of each row in sorted order. */
  long positions() {
    return address + positions;
  }

  /** The sorted partition numbers after a pass. */
  long keysAfter(int pass) {
    return address + keys[pass & 1];
  }

  /** The sorted rows after a pass. */
  long orderAfter(int pass) {
    return address + orders[pass & 1];
  }

  /** The sorted partition numbers. */
  long sortedKeys() {
    return keysAfter(passes - 1);
  }

  /** The sorted rows. */
  long sortedOrder() {
    return orderAfter(passes - 1);
  }

  /**
   * The counts of digits of each tile; after the last pass, the first sorted row of each digit in
   * each tile.
   */
  long counts() {
    return address + counts;
  }

  /** Faults, then starts, then the bytes of each string column. The host reads this. */
  long results() {
    return address + results;
  }

  long resultBytes() {
    return resultBytes;
  }

  /** The first sorted row of each partition, then the end of the last. */
  long starts() {
    return results() + FAULT_BYTES;
  }

  /** The string bytes of each partition. */
  long stringBytes(int string) {
    return starts() + 4 * (partitions + 1L) + 4L * string * partitions;
  }

  /** The string lengths of sorted rows, later replaced by the sum of those before each row. */
  long lengths(int string) {
    return address + lengths[string];
  }

  /** The sums of tiles. */
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
