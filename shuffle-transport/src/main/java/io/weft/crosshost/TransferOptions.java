package io.weft.crosshost;

import java.time.Duration;

/**
 * How transfers are batched and how long they may take.
 *
 * @param batchBytes a batch of deferred transfers leaves when it has so many bytes; 1 or more
 * @param batchAge it leaves at this age even if it has fewer
 * @param deadline from when a transfer leaves with its batch to its end; the same on all executors
 * @param idle a clique gives up its communicator when both ends had nothing to transfer for so
 *     long; the same on all executors
 */
public record TransferOptions(
    long batchBytes, Duration batchAge, Duration deadline, Duration idle) {
  /** Four MiB, five milliseconds, two minutes, five minutes. */
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
