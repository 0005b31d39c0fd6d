package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Partitions tables on the device: by Spark's hash of key columns, or by given partition numbers.
 * Open it when an exchange is prepared, because the driver compiles the kernels then. Thread-safe;
 * each call may use another lane.
 */
public final class DevicePartitioner implements AutoCloseable {
  /** The seed with which Spark's HashPartitioning starts the hash of a row. */
  public static final int SPARK_SEED = 42;

  /** The limit of partitions: the host has a layout for each. */
  public static final int MAX_PARTITIONS = 1 << 18;

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
   * @param partitions 1 to {@link #MAX_PARTITIONS}
   * @param after events that must end first, beside the table's own event
   */
  public PendingPartitions byHash(
      CudaLane lane, DeviceTable table, int[] keys, int partitions, Event... after) {
    int[] all = IntStream.range(0, table.layout().columns().size()).toArray();
    return byHash(lane, table, keys, all, partitions, after);
  }

  /**
   * Like the other method, but the partitions have only some columns of the table.
   *
   * @param kept numbers of these columns in the table, in the order of the partitions
   */
  public PendingPartitions byHash(
      CudaLane lane, DeviceTable table, int[] keys, int[] kept, int partitions, Event... after) {
    HostEvent used = new HostEvent("the partitioning of " + table);
    PartitionRequest request = PartitionRequest.byHash(table, keys, kept, partitions);
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

  /**
   * Like {@link #byIds}, but the rows of a partition have a given order instead of the table's.
   *
   * @param numbers device memory with three arrays of 4 bytes for each row: the partition of each
   *     row of the table, then the rows in the given order, each once (unchecked), then the
   *     partitions in that order. It is kept as the ids of {@link #byIds} are
   */
  public PendingPartitions byOrder(
      CudaLane lane, DeviceTable table, CudaMemory numbers, int partitions, Event... after) {
    HostEvent used = new HostEvent("the ordering of " + table);
    PartitionRequest request = PartitionRequest.byOrder(table, numbers, partitions);
    numbers.usedUntil(used);
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

  /**
   * The columns of a table to partition, with the keys or the given partition numbers. Addresses
   * are those at creation, so the caller must keep the memory. Immutable; thread-safe.
   */
  static final class PartitionRequest {
    private final TableLayout layout;
    private final List<KernelColumn> columns;
    private final List<KernelColumn> strings;
    private final List<KernelColumn> keys;
    private final long ids;

    /** The address of the rows in a given order; 0 for the table's order. */
    private final long order;

    private final int partitions;

    private PartitionRequest(
        DeviceTable table, List<KernelColumn> keys, long ids, long order, int partitions) {
      this(
          table.layout(),
          IntStream.range(0, table.layout().columns().size())
              .mapToObj(c -> KernelColumn.of(table, c))
              .toList(),
          keys,
          ids,
          order,
          partitions);
    }

    private PartitionRequest(
        TableLayout layout,
        List<KernelColumn> columns,
        List<KernelColumn> keys,
        long ids,
        long order,
        int partitions) {
      if (partitions < 1 || partitions > DevicePartitioner.MAX_PARTITIONS) {
        throw new IllegalArgumentException(
            partitions + " partitions are not 1 to " + DevicePartitioner.MAX_PARTITIONS);
      }
      this.layout = layout;
      this.columns = columns;
      this.strings = columns.stream().filter(KernelColumn::isString).toList();
      this.keys = keys;
      this.ids = ids;
      this.order = order;
      this.partitions = partitions;
    }

    static PartitionRequest byHash(DeviceTable table, int[] keys, int[] kept, int partitions) {
      TableLayout layout = table.layout();
      for (int key : keys) {
        if (key < 0
            || key >= layout.columns().size()
            || !layout.columns().get(key).kind().isKey()) {
          throw new IllegalArgumentException("column " + key + " of " + layout + " is not a key");
        }
      }
      List<KernelColumn> hashed =
          IntStream.of(keys).mapToObj(key -> KernelColumn.of(table, key)).toList();
      List<KernelColumn> columns =
          IntStream.range(0, kept.length)
              .mapToObj(c -> KernelColumn.of(table, kept[c]).withNumber(c))
              .toList();
      return new PartitionRequest(layout.only(kept), columns, hashed, 0, 0, partitions);
    }

    static PartitionRequest byIds(DeviceTable table, CudaMemory ids, int partitions) {
      requireBytes(ids, 4L * table.rows(), table);
      return new PartitionRequest(table, null, ids.address(), 0, partitions);
    }

    static PartitionRequest byOrder(DeviceTable table, CudaMemory numbers, int partitions) {
      long ids = numbers.address();
      requireBytes(numbers, 12L * table.rows(), table);
      return new PartitionRequest(table, null, ids, ids + 4L * table.rows(), partitions);
    }

    private static void requireBytes(CudaMemory ids, long bytes, DeviceTable table) {
      if (ids.bytes() < bytes) {
        throw new IllegalArgumentException(
            ids.bytes() + " bytes of partitions for " + table.rows() + " rows");
      }
    }

    /** The layout of a table with these columns. */
    TableLayout layout() {
      return layout;
    }

    int rows() {
      return layout.rows();
    }

    int partitions() {
      return partitions;
    }

    List<KernelColumn> columns() {
      return columns;
    }

    /** The string columns, in their order. */
    List<KernelColumn> strings() {
      return strings;
    }

    /** Whether the partition numbers are hashed; else they are given. */
    boolean isHashed() {
      return keys != null;
    }

    /** The hashed columns, in their order. */
    List<KernelColumn> keys() {
      return keys;
    }

    /**
     * The address of the partition number of each row: the given ones, or where hashes are written.
     */
    long ids(PartitionScratch scratch) {
      return isHashed() ? scratch.hashes() : ids;
    }

    /** The address of the rows in a given order; 0 for the table's order. */
    long order() {
      return order;
    }

    /** The address of the partition numbers in the order of the rows. */
    long orderedIds(PartitionScratch scratch) {
      return order == 0 ? ids(scratch) : order + 4L * rows();
    }
  }
}
