package io.weft.spark.gpu;

import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import java.util.ArrayList;
import java.util.List;

/**
 * Iterates over the tables of blocks of one executor. The caller closes each table that it takes.
 * For one task thread.
 */
public interface TableFetch extends AutoCloseable {
  /**
   * Limit of one request, by the sizes that map statuses estimate: it has to fit on both devices.
   */
  long REQUEST_BYTES = 32L << 20;

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
   */
  static List<TableFetch> of(
      DeviceExchange device,
      boolean own,
      String executor,
      List<DeviceBlock> blocks,
      Runnable cancelCheck) {
    if (own && device != null) {
      return List.of(new OwnTables(device, executor, blocks, cancelCheck));
    }
    if (device == null) {
      return List.of(new HostTables(executor, blocks, cancelCheck));
    }
    List<TableFetch> fetches = new ArrayList<>();
    int from = 0;
    while (from < blocks.size()) {
      int to = from;
      long bytes = 0;
      while (to < blocks.size()
          && (to == from || (bytes < REQUEST_BYTES && to - from < REQUEST_BLOCKS))) {
        bytes += blocks.get(to++).expectedBytes();
      }
      List<DeviceBlock> together = blocks.subList(from, to);
      fetches.add(
          to == from + 1 && bytes > LARGEST_BYTES
              ? new HostTables(executor, together, cancelCheck)
              : new PeerTables(device, executor, together, cancelCheck));
      from = to;
    }
    return fetches;
  }
}
