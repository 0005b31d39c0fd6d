package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.memory.Memory;
import java.util.Objects;

/**
 * The partitions of a table, each a table of its own, packed one after the other in one range of
 * device memory. The rows of a partition keep their order. Owns the memory; thread-safe.
 */
public final class PartitionedTable implements AutoCloseable {
  private final CudaMemory memory;
  private final PartitionCounts counts;
  private final Event ready;

  PartitionedTable(CudaMemory memory, PartitionCounts counts, Event ready) {
    this.memory = memory;
    this.counts = counts;
    this.ready = ready;
  }

  /** The number of partitions, including those without rows. */
  public int partitions() {
    return counts.partitions();
  }

  /** The offset of a partition within the memory, a multiple of 64. */
  public long offset(int partition) {
    return counts.offset(partition);
  }

  /** The layout of a partition; created at each call. */
  public TableLayout layout(int partition) {
    return counts.layout(partition);
  }

  /** The memory of all partitions. */
  public CudaMemory memory() {
    return memory;
  }

  /** Bytes of all partitions. */
  public long bytes() {
    return counts.bytes();
  }

  /** A view of one partition. It ends with this object. */
  public DeviceTable table(int partition) {
    return DeviceTable.view(memory, offset(partition), layout(partition), ready);
  }

  /** Ends when everything is packed. */
  public Event ready() {
    return ready;
  }

  /** Frees the memory when its uses have ended. */
  @Override
  public void close() {
    memory.close();
  }

  /**
   * The rows and bytes of each partition of a table, copied from the device's counts. Layouts are
   * created on request, because there may be millions of partitions. Immutable.
   */
  static final class PartitionCounts {
    private static final int BAD_PARTITION = 1;

    private final TableLayout table;

    /** The first sorted row of each partition, then the end of the last. */
    private final int[] starts;

    /** The bytes by partition, for one string column after the other. */
    private final int[] stringBytes;

    /** The offset of each partition in the memory of all, then the end of the last. */
    private final long[] offsets;

    /**
     * Reads the results of the device.
     *
     * @param results host address of the data that {@link PartitionScratch#results} describes
     * @param strings the number of string columns
     * @throws IllegalStateException if partition numbers of rows or offsets of strings were wrong
     */
    PartitionCounts(long results, TableLayout table, int partitions, int strings) {
      requireSound(Memory.getInt(results), table, partitions);
      this.table = table;
      this.starts = new int[partitions + 1];
      this.stringBytes = new int[Math.multiplyExact(strings, partitions)];
      this.offsets = new long[partitions + 1];
      long from = results + PartitionScratch.FAULT_BYTES;
      long bytesFrom = from + 4L * starts.length;
      Memory.copyTo(from, starts, Memory.INT_ARRAY, 4L * starts.length);
      Memory.copyTo(bytesFrom, stringBytes, Memory.INT_ARRAY, 4L * stringBytes.length);
      for (int p = 0; p < partitions; p++) {
        offsets[p + 1] = offsets[p] + layout(p).bytes();
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

    int partitions() {
      return starts.length - 1;
    }

    TableLayout layout(int partition) {
      Objects.checkIndex(partition, partitions());
      long[] bytes = new long[table.columns().size()];
      int at = partition;
      for (int c = 0; c < bytes.length; c++) {
        if (table.columns().get(c).kind().isString()) {
          bytes[c] = stringBytes[at];
          at += partitions();
        }
      }
      return TableLayout.of(table.columns(), starts[partition + 1] - starts[partition], bytes);
    }

    /** The offset of a partition in the memory of all. */
    long offset(int partition) {
      return offsets[Objects.checkIndex(partition, partitions())];
    }

    /** The bytes of all partitions. */
    long bytes() {
      return offsets[partitions()];
    }

    /** Writes the offset of each column of each partition, column after column. */
    void writePlaces(long to) {
      for (int p = 0; p < partitions(); p++) {
        TableLayout layout = layout(p);
        for (int c = 0; c < table.columns().size(); c++) {
          Memory.putLong(to + 8 * ((long) c * partitions() + p), offsets[p] + layout.start(c));
        }
      }
    }
  }
}
