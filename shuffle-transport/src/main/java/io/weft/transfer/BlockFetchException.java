package io.weft.transfer;

import java.io.IOException;

/**
 * A block could not be read. The message names both executors, the key, the path that was taken and
 * what went wrong. Spark is to be told with a fetch failure of {@link #request()}.
 */
public final class BlockFetchException extends IOException {
  private static final long serialVersionUID = 1L;

  private final transient BlockRequest request;
  private final int partition;

  /**
   * Says why a block could not be read.
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
