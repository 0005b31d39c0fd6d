package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.cuda.TieredLease;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.store.BlockKey;
import io.weft.transfers.ReceivedBuffer;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/** A table of a block of this executor, on any tier. Thread-safe; valid as long as its shuffle. */
public final class DeviceSlice {
  private final DeviceOutput.Slice slice;

  private DeviceSlice(DeviceOutput.Slice slice) {
    this.slice = slice;
  }

  /**
   * The tables of a block, in their order.
   *
   * @param executor id of the catalog's executor, for the message
   * @throws DeviceFetchException if its map output is not in the catalog
   */
  public static List<DeviceSlice> of(DeviceCatalog catalog, DeviceBlock block, String executor)
      throws DeviceFetchException {
    Optional<DeviceOutput> output = catalog.find(block.key());
    if (output.isEmpty()) {
      throw new DeviceFetchException(
          block, block + " is not on the GPU of executor " + executor + " (any more)", null);
    }
    return output.get().slices(block.partition()).stream().map(DeviceSlice::new).toList();
  }

  /** The layout of the table, with at least one row. */
  public TableLayout layout() {
    return slice.layout();
  }

  /** The bytes that a lease needs on the device: those of all partitions of the table. */
  public long leasedBytes() {
    return slice.memory().bytes();
  }

  /**
   * Moves the table to the device if needed, and keeps it there until the lease is closed.
   *
   * @throws IllegalStateException if everything else on the device is leased, or the shuffle was
   *     removed
   */
  public DeviceRows lease() {
    return DeviceRows.inPlace(slice, slice.memory().lease());
  }

  /**
   * Leases the table if it is on the device; empty if it is on the host.
   *
   * @throws IllegalStateException if its shuffle was removed
   */
  public Optional<DeviceRows> leaseIfThere() {
    return slice.memory().leaseIfOnDevice().map(lease -> DeviceRows.inPlace(slice, lease));
  }

  /**
   * Copies bytes of the table from any tier to the host. Needs no memory on the device.
   *
   * @param offset of the first byte
   * @param to address on the host, valid until the event is released
   * @return complete when the bytes are copied; failed if the shuffle was removed
   */
  public Event read(long offset, long length, long to) {
    return slice.memory().read(slice.offset() + offset, length, to);
  }

  /** Whether a map output is in a catalog. */
  public static boolean isHeld(DeviceCatalog catalog, BlockKey key) {
    return catalog.find(key).isPresent();
  }

  /**
   * A table of a block on this executor's device. Its memory stays until it is closed and the
   * events of its uses have ended. Thread-safe.
   */
  public static final class DeviceRows implements AutoCloseable {
    private final TableLayout layout;
    private final long address;
    private final Consumer<Event> keep;
    private final Runnable giveBack;

    private DeviceRows(TableLayout layout, long address, Consumer<Event> keep, Runnable giveBack) {
      this.layout = layout;
      this.address = address;
      this.keep = keep;
      this.giveBack = giveBack;
    }

    /** A table in the memory that its map task wrote. */
    static DeviceRows inPlace(DeviceOutput.Slice slice, TieredLease lease) {
      return new DeviceRows(
          slice.layout(), lease.address() + slice.offset(), lease::usedUntil, lease::close);
    }

    /** A table in a receive buffer. */
    static DeviceRows received(TableLayout layout, ReceivedBuffer buffer) {
      return new DeviceRows(
          layout, buffer.buffer().address(), buffer.memory()::usedUntil, buffer::close);
    }

    /** The layout of the table. */
    public TableLayout layout() {
      return layout;
    }

    /** The address of the table. */
    public long address() {
      return address;
    }

    /** Keeps the memory until the event has ended, also if this is closed before. */
    public void usedUntil(Event event) {
      keep.accept(event);
    }

    @Override
    public void close() {
      giveBack.run();
    }
  }
}
