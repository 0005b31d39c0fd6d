package io.weft.crosshost;

import io.weft.crosshost.wire.ManifestEntry;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import java.time.Duration;
import java.util.Optional;

/**
 * The verdict on a group that moved behind recorded, incomplete work: whether that work succeeded.
 * If the work failed, the moved data is void. The sending end puts the verdict into its next
 * manifest, and no transfer of the group completes before. Used by the lane's thread.
 */
final class Confirmation {
  /** How often a waiting lane checks its wire. */
  private static final Duration CHECK_PERIOD = Duration.ofMillis(10);

  private final CliqueLink link;
  private final Duration timeout;
  private Agreement.Group group = Agreement.Group.NONE;

  /**
   * Creates a state without a verdict.
   *
   * @param link of the clique
   * @param timeout the longest wait for the end of a source after its group has moved
   */
  Confirmation(CliqueLink link, Duration timeout) {
    this.link = link;
    this.timeout = timeout;
  }

  /** Starts the confirmation of a group that has moved. */
  void begin(Agreement.Group moved) {
    group = moved;
  }

  /** Drops the group. */
  void clear() {
    group = Agreement.Group.NONE;
  }

  /** Whether one of the ends owes a verdict. */
  boolean isDue() {
    return !group.isEmpty();
  }

  /** Whether the peer owes a verdict. */
  boolean isExpected() {
    return !group.receives().isEmpty();
  }

  /** The group that waits for verdicts. */
  Agreement.Group group() {
    return group;
  }

  /**
   * The verdict of this end, after its sources have ended. Empty if this end sent nothing.
   *
   * @throws TransferException if a source does not end in time
   */
  Optional<ManifestEntry> own() {
    if (group.sends().isEmpty()) {
      return Optional.empty();
    }
    Deadline deadline = Deadline.after(timeout);
    group.sources().forEach(source -> awaitEnd(source, deadline));
    return Optional.of(
        ManifestEntry.verdict(group.sourceFailure().map(PreparedTransfer::text).orElse("")));
  }

  /** Waits for the end of device work. The device has finished it; the host notices later. */
  private void awaitEnd(Event work, Deadline deadline) {
    while (work.state() == Event.State.RECORDED) {
      link.failure()
          .ifPresent(
              failure -> {
                throw failure;
              });
      if (Thread.currentThread().isInterrupted()) {
        throw new TransferException("interrupted while waiting for the end of " + work);
      }
      if (deadline.expired()) {
        throw new TransferException(
            work + " has not ended though the device has come behind it; waited " + deadline);
      }
      try {
        work.await(Deadline.after(CHECK_PERIOD));
      } catch (EventFailedException | EventTimeoutException e) {
        // The loop checks the state.
      }
    }
  }

  /**
   * Ends the transfers of the group by the verdicts of both ends.
   *
   * @param theirs the failure of the peer's sources; empty if they succeeded or the peer sent none
   */
  void settle(String theirs) {
    Agreement.Group settled = group;
    group = Agreement.Group.NONE;
    // One verdict for all sends, the one that the peer got.
    Optional<Throwable> failure = settled.sourceFailure();
    for (PreparedTransfer send : settled.sends()) {
      failure.ifPresentOrElse(send::end, send::complete);
    }
    for (PreparedTransfer receive : settled.receives()) {
      if (theirs.isEmpty()) {
        receive.complete();
      } else {
        receive.end(Agreement.failedAtPeer(receive, theirs));
      }
    }
  }
}
