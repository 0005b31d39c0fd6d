package io.weft.shuffle.fetch;

import io.weft.shuffle.peer.PeerAddress;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedByInterruptException;

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

  /** The path by which a block is read. */
  enum ReadPath {
    OWN("in this executor's own memory"),
    SAME_HOST("in place, from shared memory"),
    REMOTE("over the network"),
    COPY("from its copy"),
    UNKNOWN("by no path, as its executor's address is unknown");

    private final String phrase;

    ReadPath(String phrase) {
      this.phrase = phrase;
    }

    /** The path in words, for a message. */
    String phrase() {
      return phrase;
    }
  }

  /** Creates the exceptions for failed reads. Immutable. */
  static final class FetchFailures {
    private final String executorId;

    /** Creates exceptions for a reading executor. */
    FetchFailures(String executorId) {
      this.executorId = executorId;
    }

    /**
     * Returns the exception for a block that cannot be read.
     *
     * @param peer that has the block, or null if it is this executor or unknown
     */
    BlockFetchException failure(
        BlockRequest request, int partition, PeerAddress peer, ReadPath path, Throwable cause) {
      String message =
          "executor "
              + executorId
              + " cannot read "
              + request.key()
              + " partitions ["
              + request.startPartition()
              + ", "
              + request.endPartition()
              + ") of "
              + (peer == null ? "executor " + request.executorId() : peer)
              + " "
              + path.phrase()
              + ": "
              + reason(cause);
      return new BlockFetchException(request, partition, message, cause);
    }

    private static String reason(Throwable cause) {
      return cause.getMessage() == null ? cause.toString() : cause.getMessage();
    }

    /** Whether an error only means that the thread was interrupted. A timeout does not. */
    static boolean isInterrupt(Throwable error) {
      return error instanceof ClosedByInterruptException
          || (error instanceof InterruptedIOException
              && !(error instanceof SocketTimeoutException));
    }

    /** Returns the exception for an interrupted thread. Sets its interrupt status. */
    FetchInterruptedException interrupted(String waitingFor) {
      Thread.currentThread().interrupt();
      return new FetchInterruptedException(
          "executor " + executorId + " was interrupted reading " + waitingFor);
    }
  }
}
