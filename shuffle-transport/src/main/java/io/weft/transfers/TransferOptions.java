package io.weft.transfers;

import java.time.Duration;

/**
 * Limits for batches, timeouts and idle communicators of transfers.
 *
 * @param batchBytes a batch of deferred transfers is launched at this size; 1 or more
 * @param batchAge a smaller batch is launched at this age
 * @param deadline the longest time from the launch of a transfer to its end; the same on all
 *     executors
 * @param idle a clique gives up its communicator after both ends were idle for this time, the same
 *     on all executors; idle receive buffers are freed after this time
 */
public record TransferOptions(
    long batchBytes, Duration batchAge, Duration deadline, Duration idle) {
  /** 4 MiB, 5 ms, 2 minutes, 5 minutes. */
  public static final TransferOptions DEFAULT =
      new TransferOptions(
          4L << 20, Duration.ofMillis(5), Duration.ofMinutes(2), Duration.ofMinutes(5));

  public TransferOptions {
    if (batchBytes < 1
        || batchAge.isNegative()
        || deadline.toMillis() < 10
        || idle.toMillis() < 10) {
      throw new IllegalArgumentException(
          "batchBytes %d, batchAge %s, deadline %s, idle %s: at least 1, 0, 10 and 10 ms are needed"
              .formatted(batchBytes, batchAge, deadline, idle));
    }
  }

  public TransferOptions withBatchBytes(long bytes) {
    return new TransferOptions(bytes, batchAge, deadline, idle);
  }

  public TransferOptions withBatchAge(Duration age) {
    return new TransferOptions(batchBytes, age, deadline, idle);
  }

  public TransferOptions withDeadline(Duration length) {
    return new TransferOptions(batchBytes, batchAge, length, idle);
  }

  public TransferOptions withIdle(Duration length) {
    return new TransferOptions(batchBytes, batchAge, deadline, length);
  }
}
