package io.weft.device;

/**
 * A queue of work that runs in the order of submission: a CUDA stream on a device, a thread on the
 * host. Lanes run in parallel; events order work across them.
 *
 * <p>Thread-safe.
 */
public interface Lane extends AutoCloseable {
  /** A piece of work. An exception fails its event, and the lane continues. */
  @FunctionalInterface
  interface Work {
    void run() throws Exception;
  }

  /**
   * Which lane runs first when work of several lanes competes. On a device it is the stream's
   * priority. On the host it is the thread's, which the operating system may ignore.
   */
  enum Priority {
    NORMAL,
    /** For transfers, which other work waits for: they should not wait for computation. */
    HIGHEST
  }

  String name();

  Priority priority();

  /**
   * Enqueues work after all work that was submitted before.
   *
   * @param what the work, for messages
   * @param after the work starts when all these events are complete; if one fails, the work is
   *     skipped and its event fails with the same cause
   * @return an event that ends with the work. On the host it is already recorded; on a device it is
   *     recorded when the work is enqueued there
   */
  Event submit(String what, Work work, Event... after);

  /** Returns an event that completes when all work submitted so far has ended. */
  Event record();

  /**
   * Waits until all work submitted so far has ended, with or without a failure.
   *
   * @throws EventTimeoutException when the deadline passes first
   */
  void drain(Deadline deadline);

  /**
   * Waits until earlier work of this lane is done on the device, so that the current work can use
   * its results on the host. On a lane of the host it returns at once.
   *
   * @throws EventTimeoutException when the deadline passes first
   */
  default void awaitEnqueued(Deadline deadline) {}

  /** Accepts no more work, fails work that has not started, and waits for running work. */
  @Override
  void close();
}
