package io.weft.spark.gpu;

import io.weft.collectives.DataType;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.cuda.CudaException;
import io.weft.shuffle.device.BlockFetches.BlockFetch;
import io.weft.shuffle.device.Concatenation;
import io.weft.shuffle.device.DeviceBlock;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.device.DeviceSlice;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.HostReadClient;
import io.weft.shuffle.device.TableLayout;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Queue;

/**
 * Iterates over the tables of blocks of one executor. The caller closes each table that it takes.
 * For one task thread.
 */
public interface TableFetch extends AutoCloseable {
  /** Limit of the blocks in one request. */
  int REQUEST_BLOCKS = 1024;

  /** Larger blocks come table by table, through the host. */
  long LARGEST_BYTES = 256L << 20;

  /**
   * Returns whether there is another table; fetches it if necessary.
   *
   * @throws DeviceFetchException naming the first block that cannot be fetched
   */
  boolean hasNext() throws DeviceFetchException;

  /** Returns the next table. */
  FetchedTable next() throws DeviceFetchException;

  /**
   * Starts to fetch the first tables, if they come from another device and are not under way. Does
   * not wait.
   *
   * @param ahead whether other tables are read before them
   */
  default void start(boolean ahead) {}

  /**
   * Ends what {@link #start} began and was not taken. Does not wait.
   *
   * @return the ended fetch, whose memory becomes free; empty if there was none
   */
  default Optional<BlockFetch> stop() {
    return Optional.empty();
  }

  /** Bytes that it receives on this device at a time; estimated until they are under way. */
  default long receivedBytes() {
    return 0;
  }

  /** Frees tables that were fetched and not taken. Idempotent. */
  @Override
  void close();

  /**
   * Chooses the ways to fetch blocks: in place for those of this executor, from device to device
   * for those of others, and through the hosts if that is not possible.
   *
   * @param device of this executor, or null if it has none or cannot use it at the moment
   * @param own whether the blocks are those of this executor
   * @param executor that has the blocks on its device
   * @param cancelCheck is called during waits, and throws if the blocks are no longer needed
   * @param ahead of the reader, for groups from other devices
   */
  static List<TableFetch> of(
      DeviceExchange device,
      boolean own,
      String executor,
      List<DeviceBlock> blocks,
      Runnable cancelCheck,
      FetchAhead ahead) {
    if (own && device != null) {
      return List.of(new LocalTables(device, executor, blocks, cancelCheck));
    }
    if (device == null) {
      return List.of(new HostTables(executor, blocks, cancelCheck));
    }
    List<TableFetch> fetches = new ArrayList<>();
    int from = 0;
    while (from < blocks.size()) {
      int to = from + 1;
      long bytes = blocks.get(from).expectedBytes();
      while (to < blocks.size()
          && to - from < REQUEST_BLOCKS
          && bytes + blocks.get(to).expectedBytes() <= ahead.groupBytes()) {
        bytes += blocks.get(to++).expectedBytes();
      }
      List<DeviceBlock> together = blocks.subList(from, to);
      fetches.add(
          to == from + 1 && bytes > LARGEST_BYTES
              ? new HostTables(executor, together, cancelCheck)
              : new PeerTables(device, device.client(), executor, together, cancelCheck, ahead));
      from = to;
    }
    return fetches;
  }

  /**
   * Tables of another executor's blocks, copied to this host one by one: for executors without a
   * GPU, and for blocks that do not fit on one. For one task thread.
   */
  static final class HostTables implements TableFetch {
    private final String executor;
    private final Queue<DeviceBlock> blocks;
    private final Runnable cancelCheck;
    private final HostReadClient client = ExecutorGpu.current().hostReads();
    private final Queue<TableLayout> layouts = new ArrayDeque<>();
    private DeviceBlock block;
    private int table;

    HostTables(String executor, List<DeviceBlock> blocks, Runnable cancelCheck) {
      this.executor = executor;
      this.blocks = new ArrayDeque<>(blocks);
      this.cancelCheck = cancelCheck;
    }

    @Override
    public boolean hasNext() throws DeviceFetchException {
      while (layouts.isEmpty() && !blocks.isEmpty()) {
        cancelCheck.run();
        block = blocks.peek();
        table = 0;
        try {
          layouts.addAll(client.tables(executor, block));
          blocks.remove(); // Advance only now: a failed read is not the end of the data.
        } catch (InterruptedException e) {
          throw interrupted(e);
        }
      }
      return !layouts.isEmpty();
    }

    @Override
    public FetchedTable next() throws DeviceFetchException {
      if (!hasNext()) {
        throw new NoSuchElementException("there are no more tables");
      }
      TableLayout layout = layouts.peek();
      Tensor copy = Tensor.allocate(TensorType.of(DataType.INT8, layout.bytes()));
      boolean copied = false;
      try {
        client.read(executor, block, table, layout, copy.address());
        copied = true;
        table++;
        layouts.remove();
        return FetchedTable.onHost(layout, copy);
      } catch (InterruptedException e) {
        throw interrupted(e);
      } finally {
        if (!copied) {
          copy.close();
        }
      }
    }

    private IllegalStateException interrupted(InterruptedException e) {
      Thread.currentThread().interrupt();
      cancelCheck.run();
      return new IllegalStateException(
          "interrupted while reading blocks of the GPU of executor " + executor, e);
    }

    @Override
    public void close() {
      blocks.clear();
      layouts.clear();
    }
  }

  /**
   * Tables of this executor's own blocks, read in place, or combined if they are small. Each is
   * brought to the device when it is next, so they need not all fit on the device. For one task
   * thread.
   */
  static final class LocalTables implements TableFetch {
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

    LocalTables(
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
          device
              .smallTables()
              .together(found.stream().map(each -> each.slice().layout()).iterator());
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
        return table.map(combined -> FetchedTable.combined(device, combined, layouts, true));
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
        TableCombiner.logSeparate(selected.size(), e);
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
}
