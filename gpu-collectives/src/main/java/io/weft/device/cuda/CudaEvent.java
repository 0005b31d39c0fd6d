package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.HostEvent;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * The end of work on a {@link CudaLane}. It is recorded when the work has its place on the stream;
 * then other streams wait for it on the device. Thread-safe.
 */
public final class CudaEvent implements Event {
  private final HostEvent host;

  /** Ends when the device no longer uses any memory of the work, which may never happen. */
  private final HostEvent lease;

  private CudaMark mark;

  CudaEvent(String what) {
    this.host = new HostEvent(what);
    this.lease = new HostEvent("the memory of " + what);
  }

  /** Takes ownership of the mark. */
  void recorded(CudaMark place) {
    synchronized (this) {
      mark = place;
    }
    host.record();
  }

  /**
   * Makes the stream wait for this work, unless it has ended.
   *
   * @throws EventFailedException when it has ended and failed
   */
  void orderBefore(CudaStream stream, Deadline deadline) {
    synchronized (this) {
      if (mark != null) {
        stream.waitFor(mark);
        return;
      }
    }
    host.await(deadline);
  }

  /**
   * Makes later work of a stream wait, on the device, for recorded work. There is no wait for work
   * that has ended or was given up, with or without a failure. The later work runs in any case, so
   * the user of its results checks the event afterwards.
   *
   * @param work an event of a {@link CudaLane}, of any device of this process
   * @throws IllegalStateException when it is not recorded yet, so that a wait is impossible
   */
  public static void follow(Event work, CudaStream stream) {
    if (!(work instanceof CudaEvent cuda)) {
      throw new IllegalArgumentException(work + " is not work of a CUDA lane");
    }
    if (cuda.state() == State.PENDING) {
      throw new IllegalStateException(work + " has no place on a stream yet");
    }
    cuda.orderIfRunning(stream);
  }

  private synchronized void orderIfRunning(CudaStream stream) {
    if (mark != null) {
      stream.waitFor(mark);
    }
  }

  /** Ends the work. The mark and the memory are released before waiting threads continue. */
  void end(Throwable cause) {
    try {
      closeMark();
    } finally {
      lease.complete();
      inform(cause);
    }
  }

  /** Gives up the wait for the work. It may still run, so its memory is kept. */
  void giveUp(Throwable cause) {
    try {
      closeMark();
    } finally {
      inform(cause);
    }
  }

  /** Releases the memory of work that was given up and has ended since. */
  void release() {
    lease.complete();
  }

  private synchronized void closeMark() {
    if (mark != null) {
      mark.close();
      mark = null;
    }
  }

  private void inform(Throwable cause) {
    if (cause == null) {
      host.complete();
    } else {
      host.fail(cause);
    }
  }

  @Override
  public boolean isOnDevice() {
    return true;
  }

  @Override
  public State state() {
    return host.state();
  }

  @Override
  public String what() {
    return host.what();
  }

  @Override
  public void awaitRecorded(Deadline deadline) {
    host.awaitRecorded(deadline);
  }

  @Override
  public void await(Deadline deadline) {
    host.await(deadline);
  }

  @Override
  public Optional<Throwable> failure() {
    return host.failure();
  }

  @Override
  public void whenRecorded(Runnable action) {
    host.whenRecorded(action);
  }

  @Override
  public void whenDone(Consumer<Throwable> action) {
    host.whenDone(action);
  }

  @Override
  public void whenReleased(Runnable action) {
    lease.whenDone(cause -> action.run());
  }

  @Override
  public CompletableFuture<Void> toFuture() {
    return host.toFuture();
  }

  @Override
  public String toString() {
    return host.toString();
  }

  /**
   * A recorded place in a stream. Its owner closes it; the driver keeps it as long as streams wait
   * for it. Used by one thread at a time.
   */
  public static final class CudaMark implements AutoCloseable {
    private static final int WITHOUT_TIMING = 2;

    private final long handle;
    private final String where;
    private boolean closed;

    private CudaMark(long handle, String where) {
      this.handle = handle;
      this.where = where;
    }

    /** Records a mark; the device of the stream must be the current device. */
    static CudaMark record(long stream, String where) {
      long[] event = new long[1];
      CudaLibrary.check(CudaFunctions.cuEventCreate(event, WITHOUT_TIMING), "cuEventCreate");
      CudaMark mark = new CudaMark(event[0], where);
      int result = CudaFunctions.cuEventRecord(event[0], stream);
      if (result != CudaLibrary.SUCCESS) {
        mark.close();
        CudaLibrary.check(result, "cuEventRecord on " + where);
      }
      return mark;
    }

    long handle() {
      return handle;
    }

    /**
     * Whether the stream has done all work before the mark.
     *
     * @throws CudaException when the device failed
     */
    public boolean isReached() {
      int result = CudaFunctions.cuEventQuery(handle);
      if (result == CudaLibrary.NOT_READY) {
        return false;
      }
      CudaLibrary.check(result, "the work on " + where);
      return true;
    }

    @Override
    public void close() {
      if (!closed) {
        closed = true;
        CudaLibrary.check(CudaFunctions.cuEventDestroy_v2(handle), "cuEventDestroy on " + where);
      }
    }
  }
}
