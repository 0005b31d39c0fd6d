package io.weft.spark.gpu;

import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import io.weft.deviceblocks.DeviceRows;
import io.weft.deviceblocks.DeviceSlice;
import java.util.ArrayDeque;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Queue;

/**
 * Tables of this executor's own blocks, read where they lie. Each is brought to the device when its
 * turn comes, so they need not fit there together. For one task thread.
 */
final class OwnTables implements TableFetch {
  private final DeviceExchange device;
  private final String executor;
  private final Queue<DeviceBlock> blocks;
  private final Runnable wanted;
  private final Queue<DeviceSlice> slices = new ArrayDeque<>();

  /** Of the slices. */
  private DeviceBlock block;

  OwnTables(DeviceExchange device, String executor, List<DeviceBlock> blocks, Runnable wanted) {
    this.device = device;
    this.executor = executor;
    this.blocks = new ArrayDeque<>(blocks);
    this.wanted = wanted;
  }

  @Override
  public boolean hasNext() throws DeviceFetchException {
    while (slices.isEmpty() && !blocks.isEmpty()) {
      block = blocks.peek();
      slices.addAll(DeviceSlice.of(device.catalog(), block, executor));
      blocks.remove();
    }
    return !slices.isEmpty();
  }

  @Override
  public FetchedTable next() throws DeviceFetchException {
    if (!hasNext()) {
      throw new NoSuchElementException("there are no more tables");
    }
    DeviceSlice slice = slices.peek();
    DeviceRows rows = leased(slice);
    slices.remove();
    return FetchedTable.onDevice(device, rows, true);
  }

  private DeviceRows leased(DeviceSlice slice) throws DeviceFetchException {
    try {
      return device.withRoom(slice.leasedBytes(), wanted, slice::lease);
    } catch (IllegalStateException e) {
      // Where its shuffle was removed meanwhile, that is the reason.
      List<DeviceSlice> unused = DeviceSlice.of(device.catalog(), block, executor);
      throw e;
    }
  }

  @Override
  public void close() {
    blocks.clear();
    slices.clear();
  }
}
