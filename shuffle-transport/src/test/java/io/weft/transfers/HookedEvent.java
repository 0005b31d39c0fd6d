package io.weft.transfers;

import io.weft.device.Deadline;
import io.weft.device.Event;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.IntConsumer;

/** An event that tells a test of every call, so that the test decides what happens between them. */
final class HookedEvent implements Event {
  private final Event event;
  private final IntConsumer before;
  private final IntConsumer after;
  private final AtomicInteger calls = new AtomicInteger();

  /**
   * Hooks an event.
   *
   * @param before called with the number of each call, from 1, before it is passed on
   * @param after called when it has returned
   */
  HookedEvent(Event event, IntConsumer before, IntConsumer after) {
    this.event = event;
    this.before = before;
    this.after = after;
  }

  /** The number of calls so far. */
  int calls() {
    return calls.get();
  }

  private int begin() {
    int call = calls.incrementAndGet();
    before.accept(call);
    return call;
  }

  @Override
  public State state() {
    int call = begin();
    State state = event.state();
    after.accept(call);
    return state;
  }

  @Override
  public String what() {
    return event.what();
  }

  @Override
  public void awaitRecorded(Deadline deadline) {
    event.awaitRecorded(deadline);
  }

  @Override
  public void await(Deadline deadline) {
    event.await(deadline);
  }

  @Override
  public Optional<Throwable> failure() {
    int call = begin();
    Optional<Throwable> failure = event.failure();
    after.accept(call);
    return failure;
  }

  @Override
  public void whenRecorded(Runnable action) {
    int call = begin();
    event.whenRecorded(action);
    after.accept(call);
  }

  @Override
  public void whenDone(Consumer<Throwable> action) {
    int call = begin();
    event.whenDone(action);
    after.accept(call);
  }

  @Override
  public CompletableFuture<Void> toFuture() {
    return event.toFuture();
  }
}
