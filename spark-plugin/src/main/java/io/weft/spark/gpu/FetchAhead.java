package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.shuffle.device.BlockFetches;
import io.weft.shuffle.device.BlockFetches.BlockFetch;
import io.weft.spark.config.WeftSettings;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Optional;

/**
 * The fetches of a reader in their order. While the plan works on the tables of the first one, the
 * next ones are on their way, up to {@link WeftSettings#GPU_FETCH_AHEAD}. For one task thread.
 */
public final class FetchAhead {
  /** Limit of one group, by the sizes that map statuses estimate: it has to fit on both devices. */
  private static final long GROUP_BYTES = 32L << 20;

  private final long bytes;
  private final Deque<TableFetch> fetches = new ArrayDeque<>();
  private TableFetch begun;

  /**
   * Starts without fetches.
   *
   * @param bytes the most that may be on its way, 0 or more
   */
  public FetchAhead(long bytes) {
    this.bytes = bytes;
  }

  /** Limit of the bytes of one group, so that at least one may be on its way. */
  long groupBytes() {
    return bytes == 0 ? GROUP_BYTES : Math.min(GROUP_BYTES, bytes);
  }

  /** Adds fetches behind the others. */
  public void add(List<TableFetch> more) {
    fetches.addAll(more);
  }

  /** Starts the first fetch and the next ones. Does not wait. */
  public void begin() {
    TableFetch first = fetches.peek();
    if (first == null || first == begun) {
      return;
    }
    begun = first;
    first.start(false);
    if (bytes == 0) {
      return; // Also groups whose estimate is 0 stay behind.
    }
    long ahead = 0;
    for (TableFetch next : fetches) {
      if (next != first) {
        ahead += next.receivedBytes();
        if (ahead > bytes) {
          return;
        }
        next.start(true);
      }
    }
  }

  /**
   * Ends all fetches but the first. Waits until their memory is free, at most {@link
   * BlockFetches#FREE_TIMEOUT}.
   *
   * @param cancelCheck is called during the wait, and throws if the memory is no longer needed
   * @return whether any was under way
   */
  boolean free(Runnable cancelCheck) {
    List<BlockFetch> ended =
        fetches.stream().skip(1).map(TableFetch::stop).flatMap(Optional::stream).toList();
    Deadline deadline = Deadline.after(BlockFetches.FREE_TIMEOUT);
    ended.forEach(each -> each.awaitFree(deadline, cancelCheck));
    return !ended.isEmpty();
  }

  /** Removes the first fetch and closes it. */
  public void closeFirst() {
    fetches.remove().close();
  }

  /** Closes all fetches. */
  public void close() {
    fetches.forEach(TableFetch::close);
    fetches.clear();
  }
}
