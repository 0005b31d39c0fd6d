package io.weft.collectives.bootstrap;

import io.weft.collectives.CollectiveException;
import io.weft.device.Deadline;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Polls non-blocking sockets until a deadline, while ranks find each other. Stateless. */
public final class DeadlinePoller {
  private static final long PAUSE_NANOS = 100_000;
  private static final long SLACK_NANOS = 1_000_000_000;

  private DeadlinePoller() {}

  /** A step that is polled until it is done. */
  public interface Attempt {
    /** Does the part that is possible now; returns whether the whole step is done. */
    boolean isDone() throws IOException;
  }

  /**
   * Polls a step until it is done or the deadline has passed.
   *
   * @return whether it is done
   * @throws CollectiveException of kind ABORTED when this thread is interrupted
   */
  public static boolean await(Attempt attempt, Deadline deadline) throws IOException {
    while (!attempt.isDone()) {
      if (deadline.expired()) {
        return false;
      }
      if (Thread.currentThread().isInterrupted()) {
        throw new CollectiveException(
            CollectiveException.Kind.ABORTED,
            List.of(),
            "a rank was interrupted while it waited for the others");
      }
      LockSupport.parkNanos(PAUSE_NANOS);
    }
    return true;
  }

  /**
   * Returns an earlier deadline, so that other ranks hear of a failure here before their own
   * deadline.
   */
  public static Deadline beforeOthers(Deadline deadline) {
    return deadline.earlierBy(Math.min(SLACK_NANOS, deadline.length().toNanos() / 10));
  }
}
