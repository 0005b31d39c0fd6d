package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostLane;
import io.weft.device.Lane;
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
 * #stream()} and returns; its event is recorded then and completes when the device has come so far.
 *
 * <p>Work behind events of other CUDA lanes waits for them on the device; behind events of the host
 * it waits on the enqueuing thread, at most for the lane's patience. The device cannot skip what is
 * enqueued: where the event of another CUDA lane fails after it was recorded, the work behind it
 * may run, and its event fails with the same cause.
 *
 * <p>Where the device still works when the lane has waited long enough at its close, or nobody can
 * tell how far it is, events fail and the memory of their work is kept until the stream has come to
 * rest; for good, where it does not.
 */
public final class CudaLane implements Lane {
  private static final Logger LOG = LoggerFactory.getLogger(CudaLane.class);
  private static final Duration REST = Duration.ofSeconds(30);
  private static final long POLL_NANOS = 20_000;

  private final String name;
  private final Priority priority;
  private final Duration patience;
  private final CudaStream stream;
  private final HostLane enqueuer;
  private final HostLane watcher;
  private final AtomicBoolean closing = new AtomicBoolean();
  private volatile boolean abandoned;

  /** Of work that may still run. */
  private final Queue<CudaEvent> givenUp = new ConcurrentLinkedQueue<>();

  private CudaLane(String name, Duration patience, CudaStream stream, Priority priority) {
    this.name = name;
    this.priority = priority;
    this.patience = patience;
    this.stream = stream;
    this.enqueuer = HostLane.open(name, patience, "", priority);
    this.watcher = HostLane.open(name + "-done", patience, "", priority);
  }

  /**
   * Opens a lane with a stream and two threads, "weft-lane-NAME" and "weft-lane-NAME-done".
   *
   * @param patience how long work may wait for events of the host, and {@link #close} for the
   *     device
   */
  public static CudaLane open(
      CudaDevice device, String name, Duration patience, Priority priority) {
    return new CudaLane(name, patience, CudaStream.open(device, name, priority), priority);
  }

  /** For work of this lane, while it runs. */
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
      throw new IllegalStateException(this + " is closed and does not take " + what + " any more");
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
    /** Why work that came before failed on the device, having been recorded; null if none did. */
    Throwable causeBefore(Duration patience) {
      Deadline deadline = Deadline.after(patience);
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

  /** What work enqueued before it failed may still use its buffers, so its event ends as late. */
  private void watch(Enqueued work, Throwable failure) {
    CudaEvent event = work.event();
    if (failure == null) {
      event.recorded(work.mark());
    }
    watcher
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
    work.event().end(cause == null ? work.causeBefore(patience) : cause);
  }

  private EventTimeoutException late(CudaEvent event) {
    return new EventTimeoutException(
        event.what() + " did not end within " + patience + " of the end of " + this);
  }

  /** False where nobody waits for it any more. */
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
    Deadline deadline = Deadline.after(patience);
    for (Event each : dependencies) {
      order(each, stream, deadline);
    }
  }

  /**
   * Lets what is enqueued on a stream from now on wait for work: on the device for that of a CUDA
   * lane, once it is recorded; on this thread for that of the host.
   *
   * @throws EventFailedException when the work has failed
   * @throws EventTimeoutException when the deadline passed first
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
   * An event that completes when a stream has done all that is enqueued on it now. This lane waits
   * for it meanwhile: what is submitted later runs behind it.
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
            mark.close(); // The lane was closed before it came to it.
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
   * As {@link Lane#close}. An interrupt does not shorten it: the stream ends behind the work that
   * is on it, or is left to the driver. On one of the lane's own threads, such as in what runs when
   * an event ends, it returns at once, and a thread "weft-lane-NAME-close" does the rest: neither
   * thread can wait for itself.
   */
  @Override
  public void close() {
    if (!closing.compareAndSet(false, true)) {
      return;
    }
    if (enqueuer.isOwnThread() || watcher.isOwnThread()) {
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
    if (enqueuer.awaitEnd(Deadline.after(patience))) {
      interrupted |= Thread.interrupted();
      interrupted |= awaitDevice();
      watcher.close();
      endStream();
    } else {
      LOG.warn("lane {}: work is still being enqueued; its stream is left to the driver", name);
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void endStream() {
    if (stream.close(REST)) {
      givenUp.forEach(CudaEvent::release);
    } else if (!givenUp.isEmpty()) {
      LOG.warn("lane {}: the memory of {} pieces of work is kept", name, givenUp.size());
    }
    givenUp.clear();
  }

  /** Whether the thread was interrupted meanwhile, which does not end the wait. */
  private boolean awaitDevice() {
    Deadline deadline = Deadline.after(patience);
    boolean interrupted = false;
    while (!abandoned) {
      try {
        watcher.drain(deadline);
        return interrupted;
      } catch (EventTimeoutException e) {
        interrupted |= Thread.interrupted();
        if (deadline.expired()) {
          LOG.warn("lane {}: the device still works {} after the close", name, patience);
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
