package io.weft.device;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * How far a piece of work has come. It is first <em>pending</em>, then <em>recorded</em> (enqueued,
 * with its place on a lane), and ends <em>complete</em> or <em>failed</em>; it never goes back.
 *
 * <p>Consumers may enqueue work behind this event once it is recorded; only a pending one makes
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

  /** What the work is, for messages. */
  String what();

  /**
   * Waits until the work has its place on a lane (or has ended well already).
   *
   * @throws EventFailedException when it failed
   * @throws EventTimeoutException when the deadline passed first
   */
  void awaitRecorded(Deadline deadline);

  /**
   * Waits until the work is done.
   *
   * @throws EventFailedException when it failed
   * @throws EventTimeoutException when the deadline passed first
   */
  void await(Deadline deadline);

  /**
   * Whether it is work of a device: once it is recorded, streams can be ordered behind it there,
   * and nobody has to wait for it on the host.
   */
  default boolean isOnDevice() {
    return false;
  }

  /** Why it failed; empty unless the state is FAILED. */
  Optional<Throwable> failure();

  /**
   * Runs the action once this event is recorded or has ended, at once if that is so already. It
   * runs on the thread that makes it so and should be short.
   */
  void whenRecorded(Runnable action);

  /** As {@link #whenRecorded}, at the end; the argument is the failure, or null. */
  void whenDone(Consumer<Throwable> action);

  /**
   * Runs the action once memory that the work uses may go: with the end of the work. Later, or
   * never, where a device still worked when the wait for it was given up, and the event had failed.
   */
  default void whenReleased(Runnable action) {
    whenDone(cause -> action.run());
  }

  /** A future with the same end. Cancelling it changes nothing here. */
  CompletableFuture<Void> toFuture();
}
