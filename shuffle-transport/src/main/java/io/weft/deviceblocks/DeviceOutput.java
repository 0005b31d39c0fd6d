package io.weft.deviceblocks;

import io.weft.catalog.BlockKey;
import io.weft.device.cuda.TieredMemory;
import io.weft.table.TableLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * The output of one map task attempt on the device: tables, each split into the partitions of the
 * shuffle. Owns their memory. Immutable and thread-safe.
 */
public final class DeviceOutput implements AutoCloseable {
  private final BlockKey key;
  private final List<Unit> units;

  /**
   * A table that was split into partitions, in one block of memory.
   *
   * @param memory of all partitions
   * @param layouts of each partition
   * @param offsets of each partition in the memory; must not be changed
   */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  public record Unit(TieredMemory memory, List<TableLayout> layouts, long[] offsets) {}

  /**
   * The rows of a partition from one table.
   *
   * @param memory that has the rows
   * @param offset of the rows in the memory
   * @param layout of the rows; it has at least one row
   */
  record Slice(TieredMemory memory, long offset, TableLayout layout) {}

  /** Creates an output of these tables and takes ownership of them. */
  public DeviceOutput(BlockKey key, List<Unit> units) {
    this.key = key;
    this.units = List.copyOf(units);
  }

  /** The key of the map output. */
  public BlockKey key() {
    return key;
  }

  /** The tables of the output. */
  List<Unit> units() {
    return units;
  }

  /** The rows of a partition, in their order. */
  List<Slice> slices(int partition) {
    List<Slice> slices = new ArrayList<>();
    for (Unit unit : units) {
      TableLayout layout = unit.layouts().get(partition);
      if (layout.rows() > 0) {
        slices.add(new Slice(unit.memory(), unit.offsets()[partition], layout));
      }
    }
    return slices;
  }

  /** Bytes of the partition's tables. */
  public long bytes(int partition) {
    return slices(partition).stream().mapToLong(slice -> slice.layout().bytes()).sum();
  }

  /** Frees the memory. Memory that readers use is freed after their last use. */
  @Override
  public void close() {
    units.forEach(unit -> unit.memory().close());
  }
}
