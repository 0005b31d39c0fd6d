package io.weft.table;

import io.weft.device.Event;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaModule;

/**
 * Splits tables on the device: by Spark's hash of key columns, or by given partitions. Opened where
 * an exchange is prepared, as the driver compiles the kernels then. Thread-safe; lanes may differ
 * from call to call.
 */
public final class DevicePartitioner implements AutoCloseable {
  /** What Spark's HashPartitioning starts the hash of a row with. */
  public static final int SPARK_SEED = 42;

  /** Most partitions. */
  public static final int MOST_PARTITIONS = 1 << 24;

  private final CudaMemoryPool device;
  private final CudaMemoryPool pinned;
  private final CudaModule module;

  private DevicePartitioner(CudaMemoryPool device, CudaMemoryPool pinned, CudaModule module) {
    this.device = device;
    this.pinned = pinned;
    this.module = module;
  }

  /**
   * Loads the kernels.
   *
   * @param device memory for partitions, and for what partitioning takes: 12 to 20 bytes for each
   *     row and 4 for each string
   * @param pinned pinned host memory, for counts and places
   * @throws io.weft.device.cuda.CudaException when the driver refuses the kernels
   */
  public static DevicePartitioner open(CudaMemoryPool device, CudaMemoryPool pinned) {
    return new DevicePartitioner(device, pinned, CudaModule.load(device.device(), "partition"));
  }

  /**
   * Starts to partition by a hash of columns that equals Spark's {@code HashPartitioning}: Murmur3
   * with seed 42, column after column, then the positive remainder.
   *
   * @param keys numbers of columns of the table that are {@link ColumnKind#isKey keys}, in their
   *     order
   * @param partitions 1 to {@link #MOST_PARTITIONS}
   * @param after what has to end before, beside the table's own event
   */
  public PendingPartitions byHash(
      CudaLane lane, DeviceTable table, int[] keys, int partitions, Event... after) {
    throw new UnsupportedOperationException("soon");
  }

  /**
   * Starts to partition as given, such as in turn or by a seeded shuffle.
   *
   * @param ids device memory with a partition for each row, of 4 bytes, 0 to partitions - 1
   * @param after what has to end before, such as the event of the ids
   */
  public PendingPartitions byIds(
      CudaLane lane, DeviceTable table, CudaMemory ids, int partitions, Event... after) {
    throw new UnsupportedOperationException("soon");
  }

  /** The device. */
  public CudaDevice device() {
    return device.device();
  }

  /** Unloads the kernels; nothing of this may still run. */
  @Override
  public void close() {
    module.close();
  }
}
