package io.weft.spark.gpu;

import io.weft.deviceblocks.DeviceOutput;
import io.weft.memory.Bytes;
import io.weft.table.PartitionedTable;
import io.weft.table.PendingPartitions;
import io.weft.table.TableLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * The tables of a map task on their way to be its output: each is packed by partition while the
 * next one comes. For one task thread.
 */
public final class DeviceUnits implements AutoCloseable {
  /** As {@link io.weft.device.cuda.DeviceTiers} keep. */
  private static final long MOST_BYTES = Integer.MAX_VALUE - 63L;

  private final DeviceExchange device;
  private final Runnable wanted;
  private final List<DeviceOutput.Unit> units = new ArrayList<>();
  private final long[] rows;
  private final long[] bytes;
  private PartitionedTable inFlight;

  /**
   * No table so far.
   *
   * @param wanted is asked while it waits, and throws when nobody wants the output any more
   */
  public DeviceUnits(DeviceExchange device, int partitions, Runnable wanted) {
    this.device = device;
    this.wanted = wanted;
    this.rows = new long[partitions];
    this.bytes = new long[partitions];
  }

  /**
   * Packs a table whose partitions are being counted, when the one before is packed.
   *
   * @param pending stays the caller's, and can be closed when this returns
   * @param tableBytes about as many as the partitions take
   */
  public void pack(PendingPartitions pending, long tableBytes) {
    keepInFlight();
    inFlight = device.withRoom(tableBytes, wanted, () -> pending.pack(device.deadline()));
  }

  /** Waits for the table before, whose partitions are blocks from now on and may be spilled. */
  private void keepInFlight() {
    if (inFlight == null) {
      return;
    }
    PartitionedTable packed = inFlight;
    requireKeepable(packed.memory().bytes());
    packed.ready().await(device.deadline());
    List<TableLayout> layouts = new ArrayList<>();
    long[] offsets = new long[rows.length];
    for (int partition = 0; partition < rows.length; partition++) {
      TableLayout layout = packed.layout(partition);
      layouts.add(layout);
      offsets[partition] = packed.offset(partition);
      rows[partition] += layout.rows();
      bytes[partition] += layout.rows() > 0 ? layout.bytes() : 0;
    }
    units.add(new DeviceOutput.Unit(device.tiers().adopt(packed.memory()), layouts, offsets));
    inFlight = null;
  }

  /**
   * A block is kept and read as one piece of memory of the host where it has to be.
   *
   * @throws IllegalArgumentException if that is not possible, with the way out
   */
  static void requireKeepable(long bytes) {
    if (bytes > MOST_BYTES) {
      throw new IllegalArgumentException(
          ("a table of %s cannot be exchanged: %s are the most for one; the function that makes"
                  + " the batches has to make smaller ones")
              .formatted(Bytes.text(bytes), Bytes.text(MOST_BYTES)));
    }
  }

  /** All blocks, which are the caller's from now on. */
  public List<DeviceOutput.Unit> finish() {
    keepInFlight();
    List<DeviceOutput.Unit> all = List.copyOf(units);
    units.clear();
    return all;
  }

  /** Rows of each partition, once all is finished. */
  public long[] rows() {
    return rows.clone();
  }

  /** Bytes of each partition, once all is finished; not 0 where it has rows. */
  public long[] bytes() {
    return bytes.clone();
  }

  /** Gives back what was not finished. Can be repeated. */
  @Override
  public void close() {
    if (inFlight != null) {
      inFlight.close();
      inFlight = null;
    }
    units.forEach(unit -> unit.memory().close());
    units.clear();
  }
}
