package io.weft.spark.gpu;

import io.weft.memory.Bytes;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.device.PartitionedTable;
import io.weft.shuffle.device.PendingPartitions;
import io.weft.shuffle.device.TableLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Packs the tables of a map task by partition to form its output. A table is packed while the next
 * one is made. For one task thread.
 */
public final class TablePacker implements AutoCloseable {
  /** The limit of {@link io.weft.device.cuda.DeviceTiers}. */
  private static final long MAX_BYTES = Integer.MAX_VALUE - 63L;

  private final DeviceExchange device;
  private final Runnable cancelCheck;
  private final List<DeviceOutput.Unit> units = new ArrayList<>();
  private final long[] rows;
  private final long[] bytes;
  private PartitionedTable inFlight;

  /**
   * Starts without tables.
   *
   * @param cancelCheck is called during waits, and throws if the output is no longer needed
   */
  public TablePacker(DeviceExchange device, int partitions, Runnable cancelCheck) {
    this.device = device;
    this.cancelCheck = cancelCheck;
    this.rows = new long[partitions];
    this.bytes = new long[partitions];
  }

  /**
   * Packs a table whose partitions are being counted, after the table before it has been packed.
   *
   * @param pending stays the caller's, and can be closed when this returns
   * @param tableBytes estimate of the size of the partitions
   */
  public void pack(PendingPartitions pending, long tableBytes) {
    keepInFlight();
    inFlight = device.withRoom(tableBytes, cancelCheck, () -> pending.pack(device.deadline()));
  }

  /** Waits for the previous table. Its partitions become blocks and may be spilled. */
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
   * Verifies the size of a block, which must fit into one piece of host memory.
   *
   * @throws IllegalArgumentException if it does not fit; the message gives the remedy
   */
  static void requireKeepable(long bytes) {
    if (bytes > MAX_BYTES) {
      throw new IllegalArgumentException(
          ("a table of %s cannot be exchanged: the limit for one table is %s; the function that"
                  + " makes the batches has to make smaller ones")
              .formatted(Bytes.text(bytes), Bytes.text(MAX_BYTES)));
    }
  }

  /** Returns all blocks; the caller owns them. */
  public List<DeviceOutput.Unit> finish() {
    keepInFlight();
    List<DeviceOutput.Unit> all = List.copyOf(units);
    units.clear();
    return all;
  }

  /** Rows of each partition; valid after {@link #finish}. */
  public long[] rows() {
    return rows.clone();
  }

  /** Bytes of each partition; valid after {@link #finish}. Not 0 if the partition has rows. */
  public long[] bytes() {
    return bytes.clone();
  }

  /** Frees the blocks that were not finished. Idempotent. */
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
