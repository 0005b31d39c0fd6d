package io.weft.device;

/**
 * A queue of work that runs in the order of its submission: a CUDA stream on a device, a thread on
 * the host. Lanes run beside each other; events order work across them.
 *
 * <p>Thread-safe.
 */
public interface Lane extends AutoCloseable {
  /** A piece of work. What it throws fails its event; the lane goes on. */
  @FunctionalInterface
  interface Work {
    void run() throws Exception;
  }

  /**
   * Who goes first where work of several lanes competes: on a device its scheduler knows this of a
   * stream, on the host the thread has it and the operating system may ignore it.
   */
  enum Priority {
    NORMAL,
    /** For transfers: what others wait for should not stand behind what computes. */
    HIGHEST
  }

  String name();

  Priority priority();

  /**
   * Enqueues work behind everything submitted before.
   *
   * @param what the work, for messages
   * @param after the work starts once all of these are complete; if one fails the work is skipped
   *     and its event fails with the same cause
   * @return recorded already on the host, on a device once the work is enqueued there; ends with
   *     the work
   */
  Event submit(String what, Work work, Event... after);

  /** An event that completes once everything submitted so far has ended. */
  Event record();

  /**
   * Waits until everything submitted so far has ended, well or not.
   *
   * @throws EventTimeoutException when the deadline passed first
   */
  void drain(Deadline deadline);

  /**
   * For work of this lane that is about to use, on the host, what work before it enqueued on a
   * device: returns once that is done. On the host, where work is done when it returns, at once.
   *
   * @throws EventTimeoutException when the deadline passed first
   */
  default void awaitEnqueued(Deadline deadline) {}

  /** Takes no more work, fails what has not started, and waits for what runs. */
  @Override
  void close();
}
