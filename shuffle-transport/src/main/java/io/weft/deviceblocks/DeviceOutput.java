package io.weft.deviceblocks;

import io.weft.catalog.BlockKey;
import io.weft.device.cuda.TieredMemory;
import io.weft.table.TableLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * What one attempt of a map task wrote to the device: tables, each of them split into the
 * partitions of the shuffle. Owns their memory. Immutable and thread-safe.
 */
public final class DeviceOutput implements AutoCloseable {
  private final BlockKey key;
  private final List<Unit> units;

  /**
   * A table that was split: its partitions lie in one run of memory.
   *
   * @param memory of all partitions
   * @param layouts of each
   * @param offsets where each begins, not to be changed
   */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  public record Unit(TieredMemory memory, List<TableLayout> layouts, long[] offsets) {}

  /**
   * A run of rows of a partition.
   *
   * @param memory it lies in
   * @param offset where it begins there
   * @param layout what lies there; it has rows
   */
  record Slice(TieredMemory memory, long offset, TableLayout layout) {}

  /** An output of these tables, which it takes over. */
  public DeviceOutput(BlockKey key, List<Unit> units) {
    this.key = key;
    this.units = List.copyOf(units);
  }

  /** Whose it is. */
  public BlockKey key() {
    return key;
  }

  /** Its tables. */
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

  /** Gives the memory back, of which readers keep what they use. */
  @Override
  public void close() {
    units.forEach(unit -> unit.memory().close());
  }
}
