package io.weft.transfer;

import io.weft.peer.PeerAddress;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;

/** Words for what went wrong. Immutable. */
final class FetchFailures {
  private final String executorId;

  /** For an executor that reads. */
  FetchFailures(String executorId) {
    this.executorId = executorId;
  }

  /**
   * The error for a block that cannot be read.
   *
   * @param peer where it lies, or null if it is this executor or unknown
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

  /** Whether an error only says that the thread is to stop. */
  static boolean isInterrupt(Throwable error) {
    return error instanceof ClosedByInterruptException || error instanceof InterruptedIOException;
  }

  /** The error for a thread that is to stop; sets its interrupt status. */
  FetchInterruptedException interrupted(String waitingFor) {
    Thread.currentThread().interrupt();
    return new FetchInterruptedException(
        "executor " + executorId + " was interrupted reading " + waitingFor);
  }
}
