package io.weft.transfer;

import java.io.IOException;

/**
 * Thrown if a block cannot be read. The message names both executors, the key, the path and the
 * cause. The caller reports a fetch failure of {@link #request()} to Spark.
 */
public final class BlockFetchException extends IOException {
  private static final long serialVersionUID = 1L;

  private final transient BlockRequest request;
  private final int partition;

  /**
   * Creates an exception.
   *
   * @param request the request that failed
   * @param partition the first partition of it that was not delivered
   */
  public BlockFetchException(BlockRequest request, int partition, String message, Throwable cause) {
    super(message, cause);
    this.request = request;
    this.partition = partition;
  }

  /** The request that failed. */
  public BlockRequest request() {
    return request;
  }

  /** The first partition of the request that was not delivered. */
  public int partition() {
    return partition;
  }
}
