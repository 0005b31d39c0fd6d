package io.weft.device;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * The progress of a piece of work. It is first <em>pending</em>, then <em>recorded</em> (enqueued,
 * with its place on a lane), and ends <em>complete</em> or <em>failed</em>. It never goes back.
 *
 * <p>Consumers may enqueue work after this event once it is recorded; only a pending event makes
 * them wait on the host. Every event ends. Thread-safe.
 */
public interface Event {
  /** The stages in their order. */
  enum State {
    PENDING,
    RECORDED,
    COMPLETE,
    FAILED
  }

  State state();

  /** A name of the work, for messages. */
  String what();

  /**
   * Waits until the work has its place on a lane, or has completed.
   *
   * @throws EventFailedException when it failed
   * @throws EventTimeoutException when the deadline passes first
   */
  void awaitRecorded(Deadline deadline);

  /**
   * Waits until the work is done.
   *
   * @throws EventFailedException when it failed
   * @throws EventTimeoutException when the deadline passes first
   */
  void await(Deadline deadline);

  /**
   * Whether it is work of a device. Once it is recorded, streams can wait for it on the device,
   * without a wait on the host.
   */
  default boolean isOnDevice() {
    return false;
  }

  /** The cause of the failure; empty unless the state is FAILED. */
  Optional<Throwable> failure();

  /**
   * Runs the action when this event is recorded or has ended, or at once if it already is. It runs
   * on the thread that changes the state and should be short.
   */
  void whenRecorded(Runnable action);

  /** As {@link #whenRecorded}, at the end; the argument is the failure, or null. */
  void whenDone(Consumer<Throwable> action);

  /**
   * Runs the action when memory of the work may be freed, which is at the end of the work. If a
   * failed event was given up while a device still worked, this is later, or never.
   */
  default void whenReleased(Runnable action) {
    whenDone(cause -> action.run());
  }

  /** A future with the same end. Cancelling it does not affect the event. */
  CompletableFuture<Void> toFuture();
}
