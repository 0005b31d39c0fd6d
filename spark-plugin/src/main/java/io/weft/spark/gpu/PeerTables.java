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
  private final Runnable wanted;
  private Queue<DeviceRows> rows;
  private HostTables throughHosts;

  /**
   * Number of tables that do not fit together and are read one by one; after a failure, all of
   * them.
   */
  private int apart;

  PeerTables(DeviceExchange device, String executor, List<DeviceBlock> blocks, Runnable wanted) {
    this.device = device;
    this.executor = executor;
    this.blocks = List.copyOf(blocks);
    this.wanted = wanted;
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
      device.client().fetch(executor, blocks, wanted).forEach(fetched::addAll);
      rows = fetched; // Advance only now: a failed fetch is not the end of the data.
    } catch (DeviceFetchException e) {
      wanted.run();
      if (e.getCause() == null) {
        throw e; // A block is missing.
      }
      LOG.warn("{} blocks come through the hosts: {}", blocks.size(), e.getMessage());
      throughHosts = new HostTables(executor, blocks, wanted);
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
    if (apart == 0) {
      Optional<FetchedTable> made = together();
      if (made.isPresent()) {
        return made.get();
      }
    }
    apart--;
    return FetchedTable.onDevice(device, rows.remove(), false);
  }

  /** Combines the next tables; empty if they are read one by one. */
  private Optional<FetchedTable> together() {
    apart = device.smallTables().together(rows.stream().map(DeviceRows::layout).iterator());
    if (apart == 1) {
      return Optional.empty();
    }
    List<DeviceRows> those = rows.stream().limit(apart).toList();
    List<TableLayout> layouts = those.stream().map(DeviceRows::layout).toList();
    try (Concatenation made = device.smallTables().start(layouts).orElse(null)) {
      if (made == null) {
        return Optional.empty();
      }
      those.forEach(each -> made.add(FetchedTable.lent(each)));
      FetchedTable table = FetchedTable.together(device, made.finish(), layouts, false);
      those.forEach(each -> rows.remove().close());
      apart = 0;
      return Optional.of(table);
    } catch (IllegalStateException | CudaException e) {
      SmallTables.sayApart(those.size(), e);
      apart = Integer.MAX_VALUE;
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
