package io.weft.spark.gpu;

import io.weft.device.cuda.CudaException;
import io.weft.shuffle.device.BlockFetches;
import io.weft.shuffle.device.BlockFetches.BlockFetch;
import io.weft.shuffle.device.Concatenation;
import io.weft.shuffle.device.DeviceBlock;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.gpu.FetchCounters.FetchCounter;
import java.util.ArrayDeque;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Queue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tables of another executor's blocks, fetched as one group from its device to this one. If receive
 * memory is short, groups ahead are given up: first this reader's, then those of other tasks. They
 * are fetched again later. If that does not help, the blocks come one by one. Blocks that cannot be
 * fetched so come through the hosts. Small tables are combined after the fetch. For one task
 * thread.
 */
final class PeerTables implements TableFetch {
  private static final Logger LOG = LoggerFactory.getLogger(PeerTables.class);

  /**
   * How often a group waits for other tasks' memory. They may start new groups ahead meanwhile, so
   * this could go on for long.
   */
  private static final int MOST_ROOMS = 4;

  private final DeviceExchange device;
  private final BlockFetches client;
  private final String executor;
  private final Queue<DeviceBlock> blocks;
  private final Runnable cancelCheck;
  private final FetchAhead ahead;
  private final Queue<DeviceRows> rows = new ArrayDeque<>();
  private HostTables throughHosts;

  /** The next group if it is under way; else null. */
  private BlockFetch started;

  private boolean startedAhead;

  /** How often other tasks' groups were given up for the next group. */
  private int rooms;

  /** The blocks of a group. */
  private int groupBlocks;

  /**
   * Number of tables that do not fit together and are read one by one; after a failure, all of
   * them.
   */
  private int separate;

  PeerTables(
      DeviceExchange device,
      BlockFetches client,
      String executor,
      List<DeviceBlock> blocks,
      Runnable cancelCheck,
      FetchAhead ahead) {
    this.device = device;
    this.client = client;
    this.executor = executor;
    this.blocks = new ArrayDeque<>(blocks);
    this.cancelCheck = cancelCheck;
    this.ahead = ahead;
    this.groupBlocks = blocks.size();
  }

  private List<DeviceBlock> group() {
    return blocks.stream().limit(groupBlocks).toList();
  }

  @Override
  public void start(boolean isAhead) {
    if (started != null && !isAhead && !started.claim()) {
      started = null; // Another task needed its memory.
    }
    if (started == null && rows.isEmpty() && throughHosts == null && !blocks.isEmpty()) {
      List<DeviceBlock> group = group();
      started = client.start(executor, group, isAhead);
      startedAhead = isAhead;
      FetchCounters.add(FetchCounter.GROUPS, 1);
      FetchCounters.add(FetchCounter.BLOCKS, group.size());
      FetchCounters.add(FetchCounter.GROUPS_AHEAD, isAhead ? 1 : 0);
    }
  }

  @Override
  public Optional<BlockFetch> stop() {
    Optional<BlockFetch> ended = Optional.ofNullable(started);
    started = null;
    ended.ifPresent(BlockFetch::close);
    return ended;
  }

  @Override
  public long receivedBytes() {
    long estimate = group().stream().mapToLong(DeviceBlock::expectedBytes).sum();
    return started == null ? estimate : Math.max(estimate, started.bytes());
  }

  @Override
  public boolean hasNext() throws DeviceFetchException {
    while (true) {
      if (!rows.isEmpty() || (throughHosts != null && throughHosts.hasNext())) {
        return true;
      }
      throughHosts = null;
      if (blocks.isEmpty()) {
        return false;
      }
      fetch();
    }
  }

  /** Fetches the next group. After a lack of memory, the next call tries less. */
  private void fetch() throws DeviceFetchException {
    List<DeviceBlock> group = group();
    start(false);
    BlockFetch fetch = started;
    started = null;
    try {
      fetch.await(cancelCheck).forEach(rows::addAll);
    } catch (DeviceFetchException e) {
      cancelCheck.run();
      if (e.getCause() == null) {
        throw e; // A block is missing.
      }
      if (e.isShortOfMemory() && triesLess(group.size())) {
        return;
      }
      LOG.warn("{} blocks come through the hosts: {}", group.size(), e.getMessage());
      throughHosts = new HostTables(executor, group, cancelCheck);
    }
    // Advance only now: a failed fetch is not the end of the data.
    group.forEach(each -> blocks.remove());
    rooms = 0;
  }

  /** Whether another try needs less memory than the failed one, or there may be more now. */
  private boolean triesLess(int failedBlocks) {
    boolean wasAhead = startedAhead;
    startedAhead = false;
    if (ahead.free(cancelCheck) || wasAhead) {
      return true;
    }
    if (rooms < MOST_ROOMS && client.makeRoom(cancelCheck)) {
      rooms++;
      return true;
    }
    groupBlocks = 1;
    FetchCounters.add(FetchCounter.GROUPS_SPLIT, failedBlocks > 1 ? 1 : 0);
    return failedBlocks > 1;
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
      FetchedTable table = FetchedTable.combined(device, made.finish(), layouts, false);
      selected.forEach(each -> rows.remove().close());
      separate = 0;
      return Optional.of(table);
    } catch (IllegalStateException | CudaException e) {
      TableCombiner.logSeparate(selected.size(), e);
      separate = Integer.MAX_VALUE;
      return Optional.empty();
    }
  }

  @Override
  public void close() {
    if (started != null) {
      started.close();
      started = null;
    }
    blocks.clear();
    rows.forEach(DeviceRows::close);
    rows.clear();
  }
}
