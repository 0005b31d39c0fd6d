package io.weft.crosshost;

import io.weft.device.Deadline;
import io.weft.device.Event;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * The event of a deferred transfer. Waiting for it, or taking a future of it, launches its batch; a
 * listener does not.
 *
 * <p>Thread-safe.
 */
record NeededEvent(Event event, Runnable need) implements Event {
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
