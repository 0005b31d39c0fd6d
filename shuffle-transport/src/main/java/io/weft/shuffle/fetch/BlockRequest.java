package io.weft.shuffle.fetch;

import io.weft.shuffle.store.BlockKey;
import java.util.Objects;

/**
 * A request for a range of partitions of one map output.
 *
 * @param executorId the executor that has the map output
 * @param key of the map output
 * @param mapIndex Spark's map index, for error reports
 * @param startPartition first partition, at least 0
 * @param endPartition one past the last, at least {@code startPartition}
 * @param expectedBytes estimated size from the map status, at least 0
 */
public record BlockRequest(
    String executorId,
    BlockKey key,
    int mapIndex,
    int startPartition,
    int endPartition,
    long expectedBytes) {
  public BlockRequest {
    Objects.requireNonNull(executorId, "executorId");
    Objects.requireNonNull(key, "key");
    if (startPartition < 0 || endPartition < startPartition) {
      throw new IllegalArgumentException(
          key + ": partitions [" + startPartition + ", " + endPartition + ")");
    }
    if (expectedBytes < 0) {
      throw new IllegalArgumentException(key + ": expected bytes " + expectedBytes);
    }
  }
}
