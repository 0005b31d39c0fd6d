package io.weft.table;

import io.weft.device.Deadline;
import io.weft.device.Event;

/**
 * A table that is being partitioned: how many rows and bytes of strings each partition gets is
 * counted on the device, then {@link #pack} takes memory for just that. Closed without it, the
 * counting ends and nothing is packed. One thread at a time.
 */
public final class PendingPartitions implements AutoCloseable {
  PendingPartitions() {}

  /** Ends when the counts are on the host; {@link #pack} does not wait from then on. */
  public Event counted() {
    throw new UnsupportedOperationException("soon");
  }

  /**
   * Waits for the counts, takes memory and enqueues the packing on the lane of the call. The table
   * that is partitioned is kept until that has ended.
   *
   * @return whose event ends with the packing
   * @throws io.weft.device.EventFailedException when the device failed
   * @throws io.weft.device.EventTimeoutException when the counts did not come before the deadline
   * @throws IllegalStateException when it was called before, or a partition is out of range, or
   *     offsets of strings are broken
   */
  public PartitionedTable pack(Deadline deadline) {
    throw new UnsupportedOperationException("soon");
  }

  /** Gives back what was taken for the counting, when that has ended. */
  @Override
  public void close() {}
}
