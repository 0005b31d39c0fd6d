package io.weft.crosshost;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import java.util.Optional;

/**
 * What a placement gives: a transfer that leaves with its batch, or nothing to do for this
 * executor. Closing it cancels the transfer unless it has ended, and gives back what it received.
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

  /** Of a placement that has neither end here. */
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

  /** How far it is. Waiting for it makes its batch leave. */
  public Event event() {
    return event;
  }

  /** Where the array arrives; empty unless this executor receives it. */
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
