package io.weft.spark.gpu;

import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.cuda.CudaException;
import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import io.weft.deviceblocks.DeviceRows;
import io.weft.deviceblocks.DeviceSlice;
import io.weft.table.Concatenation;
import io.weft.table.DeviceTable;
import io.weft.table.TableLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Queue;

/**
 * Tables of this executor's own blocks, read in place, or combined if they are small. Each is
 * brought to the device when it is next, so they need not all fit on the device. For one task
 * thread.
 */
final class OwnTables implements TableFetch {
  private final DeviceExchange device;
  private final String executor;
  private final Queue<DeviceBlock> blocks;
  private final Runnable cancelCheck;
  private final Queue<Found> found = new ArrayDeque<>();
  private long foundBytes;

  /**
   * Number of found tables that do not fit together and are read one by one; after a failure, all
   * remaining ones.
   */
  private int separate;

  /** A table of a block. */
  private record Found(DeviceBlock block, DeviceSlice slice) {}

  OwnTables(
      DeviceExchange device, String executor, List<DeviceBlock> blocks, Runnable cancelCheck) {
    this.device = device;
    this.executor = executor;
    this.blocks = new ArrayDeque<>(blocks);
    this.cancelCheck = cancelCheck;
  }

  @Override
  public boolean hasNext() throws DeviceFetchException {
    while (found.isEmpty() && !blocks.isEmpty()) {
      findNext();
    }
    return !found.isEmpty();
  }

  private void findNext() throws DeviceFetchException {
    DeviceBlock block = blocks.peek();
    for (DeviceSlice slice : DeviceSlice.of(device.catalog(), block, executor)) {
      found.add(new Found(block, slice));
      foundBytes += slice.layout().bytes();
    }
    blocks.remove();
  }

  @Override
  public FetchedTable next() throws DeviceFetchException {
    if (!hasNext()) {
      throw new NoSuchElementException("there are no more tables");
    }
    if (separate == 0) {
      while (!device.smallTables().isEnough(foundBytes) && !blocks.isEmpty()) {
        findNext();
      }
      Optional<FetchedTable> made = together();
      if (made.isPresent()) {
        return made.get();
      }
    }
    DeviceRows rows = leased(found.peek());
    removeFound();
    separate--;
    return FetchedTable.onDevice(device, rows, true);
  }

  private void removeFound() {
    foundBytes -= found.remove().slice().layout().bytes();
  }

  /** Combines the next tables; empty if they are read one by one. */
  private Optional<FetchedTable> together() throws DeviceFetchException {
    int count =
        device.smallTables().together(found.stream().map(each -> each.slice().layout()).iterator());
    separate = count;
    if (count == 1) {
      return Optional.empty();
    }
    List<Found> selected = found.stream().limit(count).toList();
    List<TableLayout> layouts = selected.stream().map(each -> each.slice().layout()).toList();
    try (Concatenation made = device.smallTables().start(layouts).orElse(null)) {
      Optional<DeviceTable> table = made == null ? Optional.empty() : filled(made, selected);
      if (table.isPresent()) {
        selected.forEach(each -> removeFound());
        separate = 0;
      }
      return table.map(combined -> FetchedTable.together(device, combined, layouts, true));
    }
  }

  /** Empty if combining fails; it is not retried, and each table is then read in place. */
  private Optional<DeviceTable> filled(Concatenation made, List<Found> selected)
      throws DeviceFetchException {
    List<DeviceTable> leased = new ArrayList<>();
    try {
      for (Found each : selected) {
        cancelCheck.run();
        DeviceTable next = FetchedTable.lent(next(each.slice(), made, leased));
        leased.add(next);
        made.add(next);
      }
      return Optional.of(made.finish());
    } catch (IllegalStateException
        | CudaException
        | EventTimeoutException
        | EventFailedException e) {
      cancelCheck.run(); // Throws the original failure.
      for (Found each : selected) {
        requireHeld(each);
      }
      SmallTables.sayApart(selected.size(), e);
      separate = Integer.MAX_VALUE;
      return Optional.empty();
    } finally {
      leased.forEach(DeviceTable::close);
    }
  }

  /** While a table must be brought to the device, no other table is kept there. */
  private DeviceRows next(DeviceSlice slice, Concatenation made, List<DeviceTable> leased) {
    Optional<DeviceRows> onDevice = slice.leaseIfThere();
    if (onDevice.isPresent()) {
      return onDevice.get();
    }
    made.enqueue().await(device.deadline());
    leased.forEach(DeviceTable::close);
    leased.clear();
    return slice.lease();
  }

  private DeviceRows leased(Found found) throws DeviceFetchException {
    DeviceSlice slice = found.slice();
    try {
      return device.withRoom(slice.leasedBytes(), cancelCheck, slice::lease);
    } catch (IllegalStateException e) {
      requireHeld(found);
      throw e;
    }
  }

  /** If the shuffle was removed meanwhile, reports that as the reason of the failure. */
  private void requireHeld(Found found) throws DeviceFetchException {
    List<DeviceSlice> unused = DeviceSlice.of(device.catalog(), found.block(), executor);
  }

  @Override
  public void close() {
    blocks.clear();
    found.clear();
    foundBytes = 0;
  }
}
