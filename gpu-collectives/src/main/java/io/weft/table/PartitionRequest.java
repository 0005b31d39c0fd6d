package io.weft.table;

import io.weft.device.cuda.CudaMemory;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A table to partition, with the keys or the given partition numbers. Addresses are those at
 * creation, so the caller must keep the memory. Immutable; thread-safe.
 */
final class PartitionRequest {
  private final TableLayout layout;
  private final List<KernelColumn> columns;
  private final List<KernelColumn> strings;
  private final List<KernelColumn> keys;
  private final long ids;
  private final int partitions;

  private PartitionRequest(DeviceTable table, List<KernelColumn> keys, long ids, int partitions) {
    if (partitions < 1 || partitions > DevicePartitioner.MOST_PARTITIONS) {
      throw new IllegalArgumentException(
          partitions + " partitions are not 1 to " + DevicePartitioner.MOST_PARTITIONS);
    }
    this.layout = table.layout();
    this.columns =
        IntStream.range(0, layout.columns().size())
            .mapToObj(c -> KernelColumn.of(table, c))
            .toList();
    this.strings = columns.stream().filter(KernelColumn::isString).toList();
    this.keys = keys;
    this.ids = ids;
    this.partitions = partitions;
  }

  static PartitionRequest byHash(DeviceTable table, int[] keys, int partitions) {
    TableLayout layout = table.layout();
    for (int key : keys) {
      if (key < 0 || key >= layout.columns().size() || !layout.columns().get(key).kind().isKey()) {
        throw new IllegalArgumentException("column " + key + " of " + layout + " is not a key");
      }
    }
    List<KernelColumn> hashed =
        IntStream.of(keys).mapToObj(key -> KernelColumn.of(table, key)).toList();
    return new PartitionRequest(table, hashed, 0, partitions);
  }

  static PartitionRequest byIds(DeviceTable table, CudaMemory ids, int partitions) {
    if (ids.bytes() < 4L * table.rows()) {
      throw new IllegalArgumentException(
          ids.bytes() + " bytes of partitions for " + table.rows() + " rows");
    }
    return new PartitionRequest(table, null, ids.address(), partitions);
  }

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
}
