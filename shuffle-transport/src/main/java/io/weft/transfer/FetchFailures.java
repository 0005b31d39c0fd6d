package io.weft.transfer;

import io.weft.peer.PeerAddress;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;

/** Creates the exceptions for failed reads. Immutable. */
final class FetchFailures {
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
      BlockRequest request, int partition, PeerAddress peer, BlockPath path, Throwable cause) {
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

  /** Whether an error only means that the thread was interrupted. */
  static boolean isInterrupt(Throwable error) {
    return error instanceof ClosedByInterruptException || error instanceof InterruptedIOException;
  }

  /** Returns the exception for an interrupted thread. Sets its interrupt status. */
  FetchInterruptedException interrupted(String waitingFor) {
    Thread.currentThread().interrupt();
    return new FetchInterruptedException(
        "executor " + executorId + " was interrupted reading " + waitingFor);
  }
}
