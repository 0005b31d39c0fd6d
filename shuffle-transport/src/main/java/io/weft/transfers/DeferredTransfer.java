package io.weft.transfers;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * The transfer of a placement, or a no-op for an executor at neither end. It is launched with its
 * batch. Closing cancels a send unless it has ended, and closes the {@link ReceivedBuffer} of a
 * receive.
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
  static DeferredTransfer none(ArrayPlacement placement) {
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
    if (received != null) {
      received.close();
    } else if (transfer != null) {
      transfer.close();
    }
  }

  /**
   * The event of a deferred transfer. Waiting for it, or taking a future of it, launches its batch;
   * a listener does not.
   *
   * <p>Thread-safe.
   */
  record DeferredEvent(Event event, Runnable need) implements Event {
    @Override
    public State state() {
      return event.state();
    }

    @Override
    public String what() {
      return event.what();
    }

    @Override
    public void awaitRecorded(Deadline deadline) {
      need.run();
      event.awaitRecorded(deadline);
    }

    @Override
    public void await(Deadline deadline) {
      need.run();
      event.await(deadline);
    }

    @Override
    public Optional<Throwable> failure() {
      return event.failure();
    }

    @Override
    public void whenRecorded(Runnable action) {
      event.whenRecorded(action);
    }

    @Override
    public void whenDone(Consumer<Throwable> action) {
      event.whenDone(action);
    }

    @Override
    public void whenReleased(Runnable action) {
      event.whenReleased(action);
    }

    @Override
    public CompletableFuture<Void> toFuture() {
      need.run();
      return event.toFuture();
    }

    @Override
    public String toString() {
      return event.toString();
    }
  }
}
