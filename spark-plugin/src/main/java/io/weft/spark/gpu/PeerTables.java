package io.weft.spark.gpu;

import io.weft.device.cuda.CudaException;
import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import io.weft.deviceblocks.DeviceRows;
import io.weft.table.Concatenation;
import io.weft.table.TableLayout;
import java.util.ArrayDeque;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Queue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tables of another executor's blocks, fetched together from its device to this one. If that fails,
 * for example because one device has no room for all of them, they come through the hosts. Small
 * tables are combined after the fetch. For one task thread.
 */
final class PeerTables implements TableFetch {
  private static final Logger LOG = LoggerFactory.getLogger(PeerTables.class);

  private final DeviceExchange device;
  private final String executor;
  private final List<DeviceBlock> blocks;
  private final Runnable cancelCheck;
  private Queue<DeviceRows> rows;
  private HostTables throughHosts;

  /**
   * Number of tables that do not fit together and are read one by one; after a failure, all of
   * them.
   */
  private int separate;

  PeerTables(
      DeviceExchange device, String executor, List<DeviceBlock> blocks, Runnable cancelCheck) {
    this.device = device;
    this.executor = executor;
    this.blocks = List.copyOf(blocks);
    this.cancelCheck = cancelCheck;
  }

  @Override
  public boolean hasNext() throws DeviceFetchException {
    if (rows == null && throughHosts == null) {
      fetch();
    }
    return throughHosts == null ? !rows.isEmpty() : throughHosts.hasNext();
  }

  private void fetch() throws DeviceFetchException {
    try {
      Queue<DeviceRows> fetched = new ArrayDeque<>();
      device.client().fetch(executor, blocks, cancelCheck).forEach(fetched::addAll);
      rows = fetched; // Advance only now: a failed fetch is not the end of the data.
    } catch (DeviceFetchException e) {
      cancelCheck.run();
      if (e.getCause() == null) {
        throw e; // A block is missing.
      }
      LOG.warn("{} blocks come through the hosts: {}", blocks.size(), e.getMessage());
      throughHosts = new HostTables(executor, blocks, cancelCheck);
    }
  }

  @Override
  public FetchedTable next() throws DeviceFetchException {
    if (!hasNext()) {
      throw new NoSuchElementException("there are no more tables");
    }
    if (throughHosts != null) {
      return throughHosts.next();
    }
    if (separate == 0) {
      Optional<FetchedTable> made = together();
      if (made.isPresent()) {
        return made.get();
      }
    }
    separate--;
    return FetchedTable.onDevice(device, rows.remove(), false);
  }

  /** Combines the next tables; empty if they are read one by one. */
  private Optional<FetchedTable> together() {
    separate = device.smallTables().together(rows.stream().map(DeviceRows::layout).iterator());
    if (separate == 1) {
      return Optional.empty();
    }
    List<DeviceRows> selected = rows.stream().limit(separate).toList();
    List<TableLayout> layouts = selected.stream().map(DeviceRows::layout).toList();
    try (Concatenation made = device.smallTables().start(layouts).orElse(null)) {
      if (made == null) {
        return Optional.empty();
      }
      selected.forEach(each -> made.add(FetchedTable.lent(each)));
      FetchedTable table = FetchedTable.together(device, made.finish(), layouts, false);
      selected.forEach(each -> rows.remove().close());
      separate = 0;
      return Optional.of(table);
    } catch (IllegalStateException | CudaException e) {
      SmallTables.sayApart(selected.size(), e);
      separate = Integer.MAX_VALUE;
      return Optional.empty();
    }
  }

  @Override
  public void close() {
    if (rows != null) {
      rows.forEach(DeviceRows::close);
      rows.clear();
    }
  }
}
