package io.weft.crosshost;

import io.weft.crosshost.wire.ManifestEntry;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import java.time.Duration;
import java.util.Optional;

/**
 * What is left to be said of a group that moved behind work that was recorded and not complete:
 * whether that work ended well. Where it did not, what has moved is nobody's data. An end that sent
 * says so with its next manifest, and nothing of the group ends well before. For the lane's thread.
 */
final class Confirmation {
  /** How long a lane waits before it looks whether its wire still works. */
  private static final Duration LOOK = Duration.ofMillis(10);

  private final CliqueLink link;
  private final Duration patience;
  private Agreement.Group group = Agreement.Group.NONE;

  /**
   * Nothing is to be said.
   *
   * @param link of the clique
   * @param patience how long work may take to end once what is behind it has moved
   */
  Confirmation(CliqueLink link, Duration patience) {
    this.link = link;
    this.patience = patience;
  }

  /** Of a group that has moved. */
  void begin(Agreement.Group moved) {
    group = moved;
  }

  /** What began is void. */
  void clear() {
    group = Agreement.Group.NONE;
  }

  /** Whether one of the ends has something to say, this one or the peer. */
  boolean isDue() {
    return !group.isEmpty();
  }

  /** Whether the peer has. */
  boolean isExpected() {
    return !group.receives().isEmpty();
  }

  /** The group that it is about. */
  Agreement.Group group() {
    return group;
  }

  /**
   * What this end has to say, once the work before its sends has ended; empty where it sent none.
   *
   * @throws TransferException when the work does not end
   */
  Optional<ManifestEntry> own() {
    if (group.sends().isEmpty()) {
      return Optional.empty();
    }
    Deadline deadline = Deadline.after(patience);
    group.sources().forEach(source -> awaitEnd(source, deadline));
    return Optional.of(
        ManifestEntry.verdict(group.sourceFailure().map(PreparedTransfer::text).orElse("")));
  }

  /** The device is through with it; the host hears of it a little later. */
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
        work.await(Deadline.after(LOOK));
      } catch (EventFailedException | EventTimeoutException e) {
        // Its state says which.
      }
    }
  }

  /**
   * Ends the transfers of the group, after both ends have spoken.
   *
   * @param theirs what the peer says of its sends; empty where they are good, or there are none
   */
  void settle(String theirs) {
    Agreement.Group settled = group;
    group = Agreement.Group.NONE;
    // One verdict for all of them, as the peer has heard.
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
