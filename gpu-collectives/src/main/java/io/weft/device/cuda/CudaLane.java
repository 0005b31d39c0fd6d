package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaEvent.CudaMark;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A lane of a GPU: a stream, and a thread that enqueues on it. Work is code that enqueues on {@link
 * #stream()} and returns. Its event is recorded then, and completes when the device has done the
 * work.
 *
 * <p>Work after events of other CUDA lanes waits for them on the device. Work after events of the
 * host waits on the enqueuing thread, at most for the lane's timeout. The device cannot skip
 * enqueued work: if the event of another CUDA lane fails after it was recorded, the dependent work
 * may run. Its event then fails with the same cause.
 *
 * <p>If the device still works after the timeout of a close, or its progress is unknown, events
 * fail. The memory of their work is kept until the stream is idle, or forever.
 */
public final class CudaLane implements Lane {
  private static final Logger LOG = LoggerFactory.getLogger(CudaLane.class);
  private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(30);
  private static final long POLL_NANOS = 20_000;

  private final String name;
  private final Priority priority;
  private final Duration timeout;
  private final CudaStream stream;
  private final HostLane enqueuer;
  private final HostLane completer;
  private final AtomicBoolean closing = new AtomicBoolean();
  private volatile boolean abandoned;

  /** Events of work that may still run. */
  private final Queue<CudaEvent> givenUp = new ConcurrentLinkedQueue<>();

  private CudaLane(String name, Duration timeout, CudaStream stream, Priority priority) {
    this.name = name;
    this.priority = priority;
    this.timeout = timeout;
    this.stream = stream;
    this.enqueuer = HostLane.open(name, timeout, "", priority);
    this.completer = HostLane.open(name + "-done", timeout, "", priority);
  }

  /**
   * Opens a lane with a stream and two threads, "weft-lane-NAME" and "weft-lane-NAME-done".
   *
   * @param timeout how long work may wait for events of the host, and {@link #close} for the device
   */
  public static CudaLane open(CudaDevice device, String name, Duration timeout, Priority priority) {
    return new CudaLane(name, timeout, CudaStream.open(device, name, priority), priority);
  }

  /** The stream, for work of this lane while it runs. */
  public CudaStream stream() {
    return stream;
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
    if (closing.get()) {
      throw new IllegalStateException(
          this + " is closed and does not accept " + what + " any more");
    }
    CudaEvent event = new CudaEvent(what);
    List<Event> dependencies = List.of(after);
    enqueuer
        .submit(what, () -> enqueue(event, work, dependencies))
        .whenDone(
            cause -> {
              if (cause != null) {
                event.end(cause);
              }
            });
    return event;
  }

  private void enqueue(CudaEvent event, Work work, List<Event> dependencies) {
    stream.device().use();
    Throwable failure = null;
    try {
      order(dependencies);
      work.run();
    } catch (Throwable e) {
      failure = e instanceof EventFailedException && e.getCause() != null ? e.getCause() : e;
    }
    CudaMark mark;
    try {
      mark = stream.mark();
    } catch (CudaException e) {
      giveUp(event, failure == null ? e : failure);
      return;
    }
    watch(new Enqueued(event, mark, dependencies), failure);
  }

  private void giveUp(CudaEvent event, Throwable cause) {
    givenUp.add(event);
    event.giveUp(cause);
  }

  /** Work that has its place on the stream. */
  private record Enqueued(CudaEvent event, CudaMark mark, List<Event> dependencies) {
    /** The failure of earlier work on the device after it was recorded; null if there is none. */
    Throwable causeBefore(Duration timeout) {
      Deadline deadline = Deadline.after(timeout);
      for (Event each : dependencies) {
        try {
          each.await(deadline);
        } catch (EventFailedException e) {
          return e.getCause();
        } catch (EventTimeoutException e) {
          return e;
        }
      }
      return null;
    }
  }

  /**
   * Ends the event of failed work when the device has done what it enqueued, which may still use
   * its buffers.
   */
  private void watch(Enqueued work, Throwable failure) {
    CudaEvent event = work.event();
    if (failure == null) {
      event.recorded(work.mark());
    }
    completer
        .submit(event.what(), () -> finish(work, failure))
        .whenDone(
            cause -> {
              if (cause != null) {
                giveUp(event, cause);
              }
            });
  }

  private void finish(Enqueued work, Throwable failure) {
    stream.device().use();
    Throwable cause = failure;
    boolean reached = true;
    try {
      reached = awaitReached(work.mark());
    } catch (CudaException e) {
      cause = cause == null ? e : cause;
    }
    if (failure != null) {
      work.mark().close();
    }
    if (!reached) {
      giveUp(work.event(), cause == null ? late(work.event()) : cause);
      return;
    }
    work.event().end(cause == null ? work.causeBefore(timeout) : cause);
  }

  private EventTimeoutException late(CudaEvent event) {
    return new EventTimeoutException(
        event.what() + " did not end within " + timeout + " of the end of " + this);
  }

  /** Returns false if no thread waits for it any more. */
  private boolean awaitReached(CudaMark mark) {
    while (!mark.isReached()) {
      if (abandoned) {
        return false;
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
    return true;
  }

  private void order(List<Event> dependencies) {
    Deadline deadline = Deadline.after(timeout);
    for (Event each : dependencies) {
      order(each, stream, deadline);
    }
  }

  /**
   * Makes later work of a stream wait for an event: on the device for recorded work of a CUDA lane,
   * on this thread for work of the host.
   *
   * @throws EventFailedException when the work has failed
   * @throws EventTimeoutException when the deadline passes first
   */
  public static void order(Event work, CudaStream stream, Deadline deadline) {
    if (work instanceof CudaEvent cuda) {
      cuda.awaitRecorded(deadline);
      cuda.orderBefore(stream, deadline);
    } else {
      work.await(deadline);
    }
  }

  /**
   * Returns an event that completes when a stream has done all its enqueued work. Later work of
   * this lane runs after it.
   *
   * @param what the work on the stream, for messages
   */
  public Event after(String what, CudaStream other) {
    CudaMark mark = other.mark();
    AtomicBoolean given = new AtomicBoolean();
    Event event;
    try {
      event =
          submit(
              what,
              () -> {
                given.set(true);
                try (mark) {
                  stream.waitFor(mark);
                }
              });
    } catch (RuntimeException e) {
      mark.close();
      throw e;
    }
    event.whenDone(
        cause -> {
          if (!given.get()) {
            mark.close(); // The lane was closed before this work started.
          }
        });
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

  @Override
  public void awaitEnqueued(Deadline deadline) {
    try (CudaMark mark = stream.mark()) {
      while (!mark.isReached()) {
        if (deadline.expired()) {
          throw new EventTimeoutException(
              "what is enqueued on " + this + " did not end within " + deadline);
        }
        LockSupport.parkNanos(POLL_NANOS);
      }
    }
  }

  /**
   * Closes the lane as {@link Lane#close}. An interrupt does not shorten it: the stream ends after
   * its work, or is left to the driver. On one of the lane's own threads it returns at once,
   * because neither thread can wait for itself. A thread "weft-lane-NAME-close" then completes it.
   */
  @Override
  public void close() {
    if (!closing.compareAndSet(false, true)) {
      return;
    }
    if (enqueuer.isOwnThread() || completer.isOwnThread()) {
      Thread closer = new Thread(this::end, "weft-lane-" + name + "-close");
      closer.setDaemon(true);
      closer.start();
    } else {
      end();
    }
  }

  private void end() {
    boolean interrupted = Thread.interrupted();
    enqueuer.close();
    if (enqueuer.awaitEnd(Deadline.after(timeout))) {
      interrupted |= Thread.interrupted();
      interrupted |= awaitDevice();
      completer.close();
      endStream();
    } else {
      LOG.warn("lane {}: work is still being enqueued; its stream is left to the driver", name);
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void endStream() {
    if (stream.close(CLOSE_TIMEOUT)) {
      givenUp.forEach(CudaEvent::release);
    } else if (!givenUp.isEmpty()) {
      LOG.warn("lane {}: the memory of {} pieces of work is kept", name, givenUp.size());
    }
    givenUp.clear();
  }

  /** Returns whether the thread was interrupted, which does not end the wait. */
  private boolean awaitDevice() {
    Deadline deadline = Deadline.after(timeout);
    boolean interrupted = false;
    while (!abandoned) {
      try {
        completer.drain(deadline);
        return interrupted;
      } catch (EventTimeoutException e) {
        interrupted |= Thread.interrupted();
        if (deadline.expired()) {
          LOG.warn("lane {}: the device still works {} after the close", name, timeout);
          abandoned = true;
        }
      }
    }
    return interrupted;
  }

  @Override
  public String toString() {
    return "lane " + name;
  }
}
