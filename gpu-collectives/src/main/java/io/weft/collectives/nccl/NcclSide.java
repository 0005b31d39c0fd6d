package io.weft.collectives.nccl;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostLane;
import java.time.Duration;

/**
 * An engine and the thread that it belongs to.
 *
 * @param lane runs all work of the engine
 * @param agreement of the engine
 */
record NcclSide(HostLane lane, Agreement agreement, NcclEngine engine) {
  static final Duration SETTLING = Duration.ofSeconds(60);

  /** Waits for an engine that has been stopped, even if this thread is interrupted. */
  static void settle(Event event) {
    boolean interrupted = Thread.interrupted();
    Deadline deadline = Deadline.after(SETTLING);
    boolean settled = false;
    while (!settled && !deadline.expired()) {
      try {
        event.await(deadline);
        settled = true;
      } catch (EventFailedException e) {
        settled = true;
      } catch (EventTimeoutException e) {
        interrupted |= Thread.interrupted();
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
