package io.weft.table;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;

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
}
