package io.weft.spark.rapids;

import java.util.concurrent.Executor;

/**
 * Where spark-rapids' clients copy blocks out of bounce buffers, one after the other. Knows for
 * which ticket a task was handed in, so that what a client reports while it runs can be ascribed to
 * it. Thread-safe.
 */
final class CopyThread implements Executor {
  private static final ThreadLocal<ReceiveTicket> SUBMITTING = new ThreadLocal<>();
  private static final ThreadLocal<ReceiveTicket> RUNNING = new ThreadLocal<>();

  private final Executor thread;

  CopyThread(Executor thread) {
    this.thread = thread;
  }

  /** What this thread hands in meanwhile belongs to the ticket. */
  void submitFor(ReceiveTicket ticket, Runnable handIn) {
    SUBMITTING.set(ticket);
    try {
      handIn.run();
    } finally {
      SUBMITTING.remove();
    }
  }

  /** The ticket that this thread works for; null if none. */
  ReceiveTicket running() {
    return RUNNING.get();
  }

  @Override
  public void execute(Runnable task) {
    ReceiveTicket ticket = SUBMITTING.get();
    thread.execute(() -> run(task, ticket));
  }

  /** A failure that comes behind the last block of a ticket has nobody to tell any more. */
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
