package io.weft.spark.rapids;

import java.util.concurrent.Executor;

/**
 * Where spark-rapids' clients copy blocks out of bounce buffers, one after the other. Knows for
 * which ticket a task was handed in, so that what a client reports while it runs can be ascribed to
 * it. Thread-safe.
 */
final class CopyThread implements Executor {
  private final Executor thread;
  private final ThreadLocal<ReceiveTicket> submitting = new ThreadLocal<>();
  private final ThreadLocal<ReceiveTicket> running = new ThreadLocal<>();

  CopyThread(Executor thread) {
    this.thread = thread;
  }

  /** What this thread hands in meanwhile belongs to the ticket. */
  void submitFor(ReceiveTicket ticket, Runnable handIn) {
    submitting.set(ticket);
    try {
      handIn.run();
    } finally {
      submitting.remove();
    }
  }

  /** The ticket that this thread works for; null if none. */
  ReceiveTicket running() {
    return running.get();
  }

  @Override
  public void execute(Runnable task) {
    ReceiveTicket ticket = submitting.get();
    thread.execute(() -> run(task, ticket));
  }

  private void run(Runnable task, ReceiveTicket ticket) {
    running.set(ticket);
    try {
      task.run();
    } finally {
      running.remove();
    }
  }
}
