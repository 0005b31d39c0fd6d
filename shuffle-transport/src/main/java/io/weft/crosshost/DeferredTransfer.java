package io.weft.crosshost;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import java.util.Optional;

/**
 * The transfer of a placement, or a no-op for an executor at neither end. It is launched with its
 * batch. Closing cancels the transfer unless it has ended, and frees the received array.
 *
 * <p>Thread-safe.
 */
public final class DeferredTransfer implements AutoCloseable {
  private final PreparedTransfer transfer;
  private final Event event;
  private final ReceivedBuffer received;

  private DeferredTransfer(PreparedTransfer transfer, Event event, ReceivedBuffer received) {
    this.transfer = transfer;
    this.event = event;
    this.received = received;
  }

  static DeferredTransfer of(PreparedTransfer transfer, Event event) {
    return new DeferredTransfer(transfer, event, null);
  }

  static DeferredTransfer of(PreparedTransfer transfer, ReceivedBuffer received) {
    return new DeferredTransfer(transfer, received.event(), received);
  }

  /** A no-op for a placement with neither end on this executor. */
  static DeferredTransfer none(Placement placement) {
    String what =
        "the placement from %s at %s, neither of them here"
            .formatted(placement.source(), placement.destination());
    return new DeferredTransfer(null, HostEvent.completed(what), null);
  }

  /** Whether one of the ends is on this executor. */
  public boolean takesPart() {
    return transfer != null;
  }

  /** The progress of the transfer. Waiting for it launches the batch. */
  public Event event() {
    return event;
  }

  /** The array that arrives; empty unless this executor receives it. */
  public Optional<ReceivedBuffer> received() {
    return Optional.ofNullable(received);
  }

  @Override
  public void close() {
    if (transfer != null) {
      transfer.close();
    }
    if (received != null) {
      received.close();
    }
  }
}
