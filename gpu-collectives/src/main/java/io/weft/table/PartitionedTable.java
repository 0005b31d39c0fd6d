package io.weft.table;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;

/**
 * The partitions of a table, each a table of its own, packed one behind the other in one run of
 * device memory. Rows of a partition keep the order they had. Owns the memory; thread-safe.
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

  /** How many there are, those without rows included. */
  public int partitions() {
    return counts.partitions();
  }

  /** Where a partition begins within the memory, a multiple of 64. */
  public long offset(int partition) {
    return counts.offset(partition);
  }

  /** What lies there; made anew at each call. */
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

  /** A view of one partition, which ends with this. */
  public DeviceTable table(int partition) {
    return DeviceTable.view(memory, offset(partition), layout(partition), ready);
  }

  /** Ends when everything is packed. */
  public Event ready() {
    return ready;
  }

  /** Gives the memory back when work that uses it has ended. */
  @Override
  public void close() {
    memory.close();
  }
}
