package io.weft.table;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.util.Arrays;

/**
 * Partitions tables on the device: by Spark's hash of key columns, or by given partition numbers.
 * Open it when an exchange is prepared, because the driver compiles the kernels then. Thread-safe;
 * each call may use another lane.
 */
public final class DevicePartitioner implements AutoCloseable {
  /** The seed with which Spark's HashPartitioning starts the hash of a row. */
  public static final int SPARK_SEED = 42;

  /** The limit of partitions: the host has a layout for each. */
  public static final int MOST_PARTITIONS = 1 << 18;

  private final CudaMemoryPool memory;
  private final CudaMemoryPool pinned;
  private final PartitionKernels kernels;

  private DevicePartitioner(
      CudaMemoryPool memory, CudaMemoryPool pinned, PartitionKernels kernels) {
    this.memory = memory;
    this.pinned = pinned;
    this.kernels = kernels;
  }

  /**
   * Loads the kernels.
   *
   * @param memory device memory for partitions and temporary data: 12 to 24 bytes for each row and
   *     4 for each string
   * @param pinned pinned host memory, for counts and places
   * @throws io.weft.device.cuda.CudaException if the driver rejects the kernels
   */
  public static DevicePartitioner open(CudaMemoryPool memory, CudaMemoryPool pinned) {
    return new DevicePartitioner(memory, pinned, PartitionKernels.load(memory.device()));
  }

  /**
   * Starts to partition by a hash of columns that equals Spark's {@code HashPartitioning}: Murmur3
   * with seed 42, column after column, then the positive remainder.
   *
   * @param keys numbers of columns of the table that are {@link ColumnKind#isKey keys}, in their
   *     order; with none, all rows go to one partition. Strings are hashed as bytes. Spark does so
   *     for collations that compare byte by byte; strings of other collations must not be used here
   * @param partitions 1 to {@link #MOST_PARTITIONS}
   * @param after events that must end first, beside the table's own event
   */
  public PendingPartitions byHash(
      CudaLane lane, DeviceTable table, int[] keys, int partitions, Event... after) {
    HostEvent used = new HostEvent("the partitioning of " + table);
    PartitionRequest request = PartitionRequest.byHash(table, keys, partitions);
    return start(lane, table, request, used, after);
  }

  /**
   * Starts to partition by given numbers, such as round-robin or a seeded shuffle.
   *
   * @param ids device memory with a partition number for each row, of 4 bytes, 0 to partitions - 1.
   *     It is kept until the partitioning has ended, so it may be closed at once. It must not
   *     change until then: it is checked when rows are counted, and read again when they are packed
   * @param after events that must end first, such as the event of the ids
   */
  public PendingPartitions byIds(
      CudaLane lane, DeviceTable table, CudaMemory ids, int partitions, Event... after) {
    HostEvent used = new HostEvent("the partitioning of " + table);
    PartitionRequest request = PartitionRequest.byIds(table, ids, partitions);
    ids.usedUntil(used);
    return start(lane, table, request, used, after);
  }

  private PendingPartitions start(
      CudaLane lane, DeviceTable table, PartitionRequest request, HostEvent used, Event... after) {
    try {
      table.usedUntil(used);
      kernels.usedUntil(used);
      PendingPartitions pending = new PendingPartitions(this, lane, request, used);
      Event[] all = Arrays.copyOf(after, after.length + 1);
      all[after.length] = table.ready();
      pending.start(all);
      return pending;
    } catch (RuntimeException e) {
      used.complete();
      throw e;
    }
  }

  CudaMemoryPool memory() {
    return memory;
  }

  CudaMemoryPool pinned() {
    return pinned;
  }

  PartitionKernels kernels() {
    return kernels;
  }

  /**
   * Unloads the kernels after their running work. Tables that are not packed yet can no longer be
   * packed.
   */
  @Override
  public void close() {
    kernels.close();
  }
}
