package io.weft.deviceblocks;

import io.weft.catalog.BlockKey;
import io.weft.device.Event;
import io.weft.table.TableLayout;
import java.util.List;
import java.util.Optional;

/**
 * A table of a block of this executor, wherever its memory is at the moment. Thread-safe; there as
 * long as its shuffle.
 */
public final class DeviceSlice {
  private final DeviceOutput.Slice slice;

  private DeviceSlice(DeviceOutput.Slice slice) {
    this.slice = slice;
  }

  /**
   * The tables of a block, in their order.
   *
   * @param executor that has the catalog, for the message
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

  /** What lies there; it has rows. */
  public TableLayout layout() {
    return slice.layout();
  }

  /** Bytes that have to be on the device for a lease: those of all partitions of its table. */
  public long leasedBytes() {
    return slice.memory().bytes();
  }

  /**
   * Brings it to the device, where it is not there, and keeps it there until it is closed.
   *
   * @throws IllegalStateException if everything else on the device is leased, or its shuffle was
   *     removed
   */
  public DeviceRows lease() {
    return DeviceRows.inPlace(slice, slice.memory().lease());
  }

  /**
   * Keeps it on the device, if it lies there; nothing where it lies on the host.
   *
   * @throws IllegalStateException if its shuffle was removed
   */
  public Optional<DeviceRows> leaseIfThere() {
    return slice.memory().leaseIfThere().map(lease -> DeviceRows.inPlace(slice, lease));
  }

  /**
   * Copies some of it to the host from wherever it lies, which needs no room on the device.
   *
   * @param offset of the first byte
   * @param to address on the host, which has to stay until the event is released
   * @return complete when the bytes are there; failed when its shuffle was removed
   */
  public Event read(long offset, long length, long to) {
    return slice.memory().read(slice.offset() + offset, length, to);
  }

  /** Whether a map output is in a catalog. */
  public static boolean isHeld(DeviceCatalog catalog, BlockKey key) {
    return catalog.find(key).isPresent();
  }
}
