package io.weft.collectives;

import io.weft.collectives.Operation.Signature;
import io.weft.device.Deadline;
import java.util.List;

/**
 * Times the operations of a communicator and counts them. Two reads of the clock take a third of a
 * small operation. So after a quick one, the next that are like it are not timed: each counts as
 * long as that one and as it waited, because a long wait has its own clock.
 *
 * <p>One operation at a time.
 */
final class OperationClock {
  private static final long QUICK_NANOS = 2_000;
  private static final int UNTIMED = 31;

  private final CollectiveMetrics metrics;
  private final long timeoutNanos;
  private OperationKind kind;
  private Signature signature;
  private long bytes;
  private long receivedRows;
  private long quickNanos;
  private int untimed;
  private boolean timed;
  private Deadline deadline;

  /**
   * The clock of a communicator.
   *
   * @param timeoutNanos of each operation
   */
  OperationClock(CollectiveMetrics metrics, long timeoutNanos) {
    this.metrics = metrics;
    this.timeoutNanos = timeoutNanos;
  }

  /** Starts an operation and returns its deadline. */
  Deadline start(Operation operation) {
    timed = untimed == 0 || !isLikeTheLast(operation);
    if (timed) {
      kind = operation.kind();
      signature = operation.signature();
      bytes = operation.bytes();
      receivedRows = receivedRows(operation);
      deadline = Deadline.afterNanos(timeoutNanos);
    } else {
      untimed--;
      deadline = Deadline.fromFirstUse(timeoutNanos);
    }
    return deadline;
  }

  /** Whether this rank has as much to do: another root or more rows to receive take longer. */
  private boolean isLikeTheLast(Operation operation) {
    return operation.bytes() == bytes
        && operation.signature().equals(signature)
        && receivedRows(operation) == receivedRows;
  }

  private static long receivedRows(Operation operation) {
    return operation instanceof RaggedAllToAll ragged ? ragged.layout().receivedRows() : 0;
  }

  /** Counts the operation that was started last, and has waited for other ranks. */
  void end(Algorithm algorithm, long waitNanos) {
    long nanos = quickNanos + waitNanos;
    if (timed) {
      nanos = deadline.elapsedNanos();
      quickNanos = Math.max(0, nanos - waitNanos);
      untimed = nanos < QUICK_NANOS ? UNTIMED : 0;
    }
    metrics.count(kind, algorithm, bytes, nanos, waitNanos);
  }

  /** Counts the operation that was started last as failed. */
  void fail(long waitNanos) {
    untimed = 0;
    metrics.countFailure(kind, deadline.elapsedNanos(), waitNanos);
  }

  /** Shares the time of a group evenly, because the times of its operations are not known. */
  void count(List<Operation> group, Algorithm algorithm, long nanos, long waitNanos) {
    for (Operation operation : group) {
      metrics.count(
          operation.kind(),
          algorithm,
          operation.bytes(),
          nanos / group.size(),
          waitNanos / group.size());
    }
  }

  /** Counts all operations of a group as failed, because it is not known which of them failed. */
  void countFailure(List<Operation> failed, long nanos, long waitNanos) {
    for (Operation operation : failed) {
      metrics.countFailure(operation.kind(), nanos / failed.size(), waitNanos / failed.size());
    }
  }
}
