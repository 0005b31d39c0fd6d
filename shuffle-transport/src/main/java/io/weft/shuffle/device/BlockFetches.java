package io.weft.shuffle.device;

import io.weft.device.Deadline;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import java.time.Duration;
import java.util.List;

/** Fetches groups of device blocks to this executor's device. Thread-safe. */
public interface BlockFetches {
  /** The limit of a wait for the memory of all groups that a task gives up at a time. */
  Duration FREE_TIMEOUT = Duration.ofSeconds(5);

  /**
   * Starts to fetch blocks of one executor, all at once. Does not wait. Fetches of another executor
   * arrive in the order of their starts, whether or not they are awaited.
   *
   * @param ahead whether the blocks are not needed yet; {@link #makeRoom} may drop them until they
   *     are claimed
   * @return the caller awaits or closes it
   */
  BlockFetch start(String executor, List<DeviceBlock> blocks, boolean ahead);

  /**
   * Drops all groups of this executor's tasks that are ahead, because a task needs receive memory
   * now. Waits until their memory is free, at most {@link #FREE_TIMEOUT}.
   *
   * @param wanted is called periodically during the wait, and throws if the memory is not needed
   *     any more
   * @return whether there was any
   */
  boolean makeRoom(Runnable wanted);

  /**
   * Blocks of one executor; those of another one are on their way. For one thread, except that
   * {@link #makeRoom} may drop it.
   */
  interface BlockFetch extends AutoCloseable {
    /** The bytes that it receives; 0 while that is unknown. */
    long bytes();

    /** Ends its time ahead. Returns false if it was dropped before; start it again then. */
    boolean claim();

    /**
     * Claims it and waits for all blocks. Ends the fetch if it fails. Call it once.
     *
     * @param wanted is called periodically during the wait, and throws if the blocks are not needed
     *     any more
     * @return the tables of each block, in their order; the caller closes each of them
     * @throws DeviceFetchException naming the first block that failed; then no table stays open
     */
    List<List<DeviceRows>> await(Runnable wanted) throws DeviceFetchException;

    /**
     * Waits until the memory of a closed fetch is free. After the deadline it returns all the same.
     *
     * @param wanted is called periodically during the wait, and throws if the memory is not needed
     *     any more
     */
    void awaitFree(Deadline deadline, Runnable wanted);

    /** Ends a fetch that was not awaited: withdraws its arrays and frees those that have come. */
    @Override
    void close();
  }
}
