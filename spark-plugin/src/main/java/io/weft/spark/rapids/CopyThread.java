package io.weft.spark.rapids;

import java.util.concurrent.Executor;

/**
 * The thread on which spark-rapids' clients copy blocks out of bounce buffers, one after the other.
 * It knows the ticket of the task that runs, so that reports of the client can be assigned to the
 * ticket. Thread-safe.
 */
final class CopyThread implements Executor {
  private static final ThreadLocal<ReceiveTicket> SUBMITTING = new ThreadLocal<>();
  private static final ThreadLocal<ReceiveTicket> RUNNING = new ThreadLocal<>();

  private final Executor thread;

  CopyThread(Executor thread) {
    this.thread = thread;
  }

  /** Assigns the tasks that this thread submits meanwhile to the ticket. */
  void submitFor(ReceiveTicket ticket, Runnable handIn) {
    SUBMITTING.set(ticket);
    try {
      handIn.run();
    } finally {
      SUBMITTING.remove();
    }
  }

  /** The ticket of the task that this thread runs; null if none. */
  ReceiveTicket running() {
    return RUNNING.get();
  }

  @Override
  public void execute(Runnable task) {
    ReceiveTicket ticket = SUBMITTING.get();
    thread.execute(() -> run(task, ticket));
  }

  /** Runs a task, unless its ticket is closed: then there is no receiver for a late failure. */
  private void run(Runnable task, ReceiveTicket ticket) {
    if (ticket != null && ticket.isClosed()) {
      return;
    }
    RUNNING.set(ticket);
    try {
      task.run();
    } finally {
      RUNNING.remove();
    }
  }
}
