package io.weft.spark.gpu;

import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import java.util.ArrayList;
import java.util.List;

/**
 * Tables of blocks of one executor, one after the other. Whoever takes a table closes it. For one
 * task thread.
 */
public interface TableFetch extends AutoCloseable {
  /** Asked for at a time, as map statuses estimate it: so much has to fit on both devices. */
  long REQUEST_BYTES = 32L << 20;

  /** Blocks that are asked for at a time. */
  int REQUEST_BLOCKS = 1024;

  /** Larger blocks come table by table, through the host. */
  long LARGEST_BYTES = 256L << 20;

  /**
   * Whether there is another table; fetches it if need be.
   *
   * @throws DeviceFetchException naming the first block that cannot be had
   */
  boolean hasNext() throws DeviceFetchException;

  /** The next table. */
  FetchedTable next() throws DeviceFetchException;

  /** Gives back what was fetched and not taken. Can be repeated. */
  @Override
  void close();

  /**
   * The ways to blocks: in place for those of this executor, from device to device for those of
   * others, and through the hosts where that is not possible.
   *
   * @param device of this executor, or null if it has none or cannot use it at the moment
   * @param own whether the blocks are those of this executor
   * @param executor that has the blocks on its device
   * @param wanted is asked while it waits, and throws when nobody wants them any more
   */
  static List<TableFetch> of(
      DeviceExchange device,
      boolean own,
      String executor,
      List<DeviceBlock> blocks,
      Runnable wanted) {
    if (own && device != null) {
      return List.of(new OwnTables(device, executor, blocks, wanted));
    }
    if (device == null) {
      return List.of(new HostTables(executor, blocks, wanted));
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
              ? new HostTables(executor, together, wanted)
              : new PeerTables(device, executor, together, wanted));
      from = to;
    }
    return fetches;
  }
}
