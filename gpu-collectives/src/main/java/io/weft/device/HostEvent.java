package io.weft.device;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An event that code of this process ends. The producer holds this class, consumers see {@link
 * Event}. Closing an event that has not ended fails it, so a producer with a try block always ends
 * the waits of its consumers.
 *
 * <p>Thread-safe. The first end counts.
 */
public final class HostEvent implements Event, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(HostEvent.class);

  private final String what;
  private final Object lock = new Object();
  private State state = State.PENDING;
  private Throwable failure;
  private List<Runnable> onRecorded = new ArrayList<>();
  private List<Consumer<Throwable>> onDone = new ArrayList<>();

  /**
   * Creates a pending event.
   *
   * @param what the work, for messages, such as "all-reduce #4"
   */
  public HostEvent(String what) {
    this.what = what;
  }

  /** Returns an event of work that is already done. */
  public static Event completed(String what) {
    HostEvent event = new HostEvent(what);
    event.complete();
    return event;
  }

  /** Records that the work is enqueued. Does nothing once it is recorded or has ended. */
  public void record() {
    List<Runnable> actions;
    synchronized (lock) {
      if (state != State.PENDING) {
        return;
      }
      state = State.RECORDED;
      actions = takeRecorded();
      lock.notifyAll();
    }
    actions.forEach(this::inform);
  }

  /** Completes the event. */
  public void complete() {
    end(State.COMPLETE, null);
  }

  /** Fails the event. */
  public void fail(Throwable cause) {
    end(State.FAILED, cause);
  }

  private void end(State end, Throwable cause) {
    List<Runnable> recorded;
    List<Consumer<Throwable>> done;
    synchronized (lock) {
      if (hasEnded()) {
        return;
      }
      state = end;
      failure = cause;
      recorded = takeRecorded();
      done = onDone;
      onDone = List.of();
      lock.notifyAll();
    }
    recorded.forEach(this::inform);
    done.forEach(action -> inform(() -> action.accept(cause)));
  }

  /** Logs the failure of a listener, so that the other listeners still run. */
  private void inform(Runnable listener) {
    try {
      listener.run();
    } catch (RuntimeException | Error e) {
      LOG.error("A listener of {} failed", what, e);
    }
  }

  private List<Runnable> takeRecorded() {
    List<Runnable> actions = onRecorded;
    onRecorded = List.of();
    return actions;
  }

  private boolean hasEnded() {
    return state == State.COMPLETE || state == State.FAILED;
  }

  /** Fails the event unless it has ended, because its producer has stopped. */
  @Override
  public void close() {
    fail(new IllegalStateException(what + " was dropped by its producer before it ended"));
  }

  @Override
  public State state() {
    synchronized (lock) {
      return state;
    }
  }

  @Override
  public String what() {
    return what;
  }

  @Override
  public Optional<Throwable> failure() {
    synchronized (lock) {
      return Optional.ofNullable(failure);
    }
  }

  @Override
  public void awaitRecorded(Deadline deadline) {
    awaitState(State.RECORDED, deadline);
  }

  @Override
  public void await(Deadline deadline) {
    awaitState(State.COMPLETE, deadline);
  }

  private void awaitState(State wanted, Deadline deadline) {
    synchronized (lock) {
      try {
        while (state.compareTo(wanted) < 0) {
          if (deadline.expired()) {
            throw new EventTimeoutException(
                what + " is still " + state + " after " + deadline + "; waited for " + wanted);
          }
          lock.wait(Math.max(1, deadline.remainingNanos() / 1_000_000L));
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new EventTimeoutException("interrupted while waiting for " + what);
      }
      if (state == State.FAILED) {
        throw new EventFailedException(what, failure);
      }
    }
  }

  @Override
  public void whenRecorded(Runnable action) {
    synchronized (lock) {
      if (state == State.PENDING) {
        onRecorded.add(action);
        return;
      }
    }
    action.run();
  }

  @Override
  public void whenDone(Consumer<Throwable> action) {
    Throwable cause;
    synchronized (lock) {
      if (!hasEnded()) {
        onDone.add(action);
        return;
      }
      cause = failure;
    }
    action.accept(cause);
  }

  @Override
  public CompletableFuture<Void> toFuture() {
    CompletableFuture<Void> future = new CompletableFuture<>();
    whenDone(
        cause -> {
          if (cause == null) {
            future.complete(null);
          } else {
            future.completeExceptionally(cause);
          }
        });
    return future;
  }

  @Override
  public String toString() {
    return what + " (" + state() + ")";
  }
}
