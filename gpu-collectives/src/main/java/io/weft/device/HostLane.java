package io.weft.device;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A lane of the host: one daemon thread, "weft-lane-NAME", that runs the work in order.
 *
 * <p>Work that waits for an event of another lane blocks this lane, like a wait of a stream. The
 * lane's timeout limits that wait. The thread has the lane's priority; most operating systems
 * ignore it by default.
 */
public final class HostLane implements Lane {
  private static final Logger LOG = LoggerFactory.getLogger(HostLane.class);

  /** Work in the queue; an entry without work is the end of the queue. */
  private record Entry(Work work, List<Event> after, HostEvent event) {
    boolean isLast() {
      return work == null;
    }
  }

  private final String name;
  private final Duration timeout;
  private final String logPrefix;
  private final Priority priority;
  private final LinkedBlockingQueue<Entry> queue = new LinkedBlockingQueue<>();
  private final Thread thread;
  private final Object admission = new Object();
  private boolean closed;

  @SuppressWarnings("ThreadPriorityCheck") // The behavior does not depend on it.
  private HostLane(String name, Duration timeout, String logPrefix, Priority priority) {
    this.name = name;
    this.timeout = timeout;
    this.logPrefix = logPrefix;
    this.priority = priority;
    this.thread = new Thread(this::runAll, "weft-lane-" + name);
    thread.setDaemon(true);
    thread.setPriority(priority == Priority.HIGHEST ? Thread.MAX_PRIORITY : Thread.NORM_PRIORITY);
  }

  /**
   * Starts a lane and its thread.
   *
   * @param timeout how long work may wait for the events before it, and how long {@link #close()}
   *     waits for running work
   */
  public static HostLane open(String name, Duration timeout) {
    return open(name, timeout, "");
  }

  /**
   * Starts a lane and its thread.
   *
   * @param logPrefix the start of every log line and error message; it names the owner of the lane
   */
  public static HostLane open(String name, Duration timeout, String logPrefix) {
    return open(name, timeout, logPrefix, Priority.NORMAL);
  }

  /** As {@link #open(String, Duration, String)}, with a priority. */
  public static HostLane open(String name, Duration timeout, String logPrefix, Priority priority) {
    HostLane lane = new HostLane(name, timeout, logPrefix, priority);
    lane.thread.start();
    return lane;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Priority priority() {
    return priority;
  }

  @Override
  public Event submit(String what, Work work, Event... after) {
    HostEvent event = new HostEvent(what);
    synchronized (admission) {
      if (closed) {
        throw new IllegalStateException(
            logPrefix + "lane " + name + " is closed and does not accept " + what + " any more");
      }
      queue.add(new Entry(work, List.of(after), event));
    }
    event.record();
    return event;
  }

  @Override
  public Event record() {
    return submit("everything before on lane " + name, () -> {});
  }

  @Override
  public void drain(Deadline deadline) {
    record().await(deadline);
  }

  private void runAll() {
    for (Entry entry = next(); !entry.isLast(); entry = next()) {
      runOne(entry);
    }
  }

  private Entry next() {
    while (true) {
      try {
        return queue.take();
      } catch (InterruptedException e) {
        LOG.debug("{}lane {}: an interrupt came after its work had ended", logPrefix, name);
      }
    }
  }

  private void runOne(Entry entry) {
    try (HostEvent event = entry.event()) {
      try {
        awaitAll(entry.after());
        entry.work().run();
        event.complete();
      } catch (Throwable e) {
        LOG.info("{}lane {}: {} failed: {}", logPrefix, name, event.what(), e.toString());
        event.fail(e instanceof EventFailedException && e.getCause() != null ? e.getCause() : e);
      }
    }
  }

  private void awaitAll(List<Event> events) {
    Deadline deadline = Deadline.after(timeout);
    for (Event event : events) {
      event.await(deadline);
    }
  }

  @Override
  public void close() {
    synchronized (admission) {
      if (closed) {
        return;
      }
      closed = true;
    }
    failWaiting();
    queue.add(new Entry(null, List.of(), new HostEvent("the end of lane " + name)));
    join();
  }

  private void failWaiting() {
    for (Entry entry = queue.poll(); entry != null; entry = queue.poll()) {
      entry
          .event()
          .fail(
              new IllegalStateException(
                  logPrefix
                      + "lane "
                      + name
                      + " was closed before it started "
                      + entry.event().what()));
    }
  }

  /** Whether the calling thread is this lane's own thread, which cannot wait for itself. */
  public boolean isOwnThread() {
    return Thread.currentThread() == thread;
  }

  private void join() {
    if (isOwnThread()) {
      return;
    }
    try {
      thread.join(Math.max(1, timeout.toMillis()));
      if (thread.isAlive()) {
        LOG.warn("{}lane {}: work still runs {} after the close", logPrefix, name, timeout);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Waits after the close until the last work has ended. An interrupt does not end the wait, and
   * the thread stays interrupted.
   *
   * @return false when work still runs at the deadline, and at once on the lane's own thread
   */
  public boolean awaitEnd(Deadline deadline) {
    if (isOwnThread()) {
      return false;
    }
    boolean interrupted = false;
    while (thread.isAlive() && !deadline.expired()) {
      try {
        thread.join(Math.max(1, deadline.remainingNanos() / 1_000_000L));
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return !thread.isAlive();
  }

  @Override
  public String toString() {
    return "lane " + name;
  }
}
