package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaEvent.CudaMark;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A queue of the device's work. Methods only enqueue; only {@link #close} and copies of memory that
 * is not pinned wait for the device. Memory must stay until a mark after its last use is reached.
 * Used by one thread at a time.
 */
public final class CudaStream implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(CudaStream.class);
  private static final int NON_BLOCKING = 1;
  private static final long POLL_NANOS = 20_000;
  private static final Duration CLOSING = Duration.ofSeconds(30);

  private final CudaDevice device;
  private final String name;
  private final long handle;
  private final boolean borrowed;
  private boolean closed;

  private CudaStream(CudaDevice device, String name, long handle, boolean borrowed) {
    this.device = device;
    this.name = name;
    this.handle = handle;
    this.borrowed = borrowed;
  }

  /** Opens a stream that runs beside all others, also beside the legacy default stream. */
  public static CudaStream open(CudaDevice device, String name, Priority priority) {
    device.use();
    int[] least = new int[1];
    int[] greatest = new int[1];
    CudaLibrary.check(
        CudaFunctions.cuCtxGetStreamPriorityRange(least, greatest), "cuCtxGetStreamPriorityRange");
    long[] stream = new long[1];
    CudaLibrary.check(
        CudaFunctions.cuStreamCreateWithPriority(
            stream, NON_BLOCKING, priority == Priority.HIGHEST ? greatest[0] : least[0]),
        "cuStreamCreateWithPriority of " + name);
    return new CudaStream(device, name, stream[0], false);
  }

  /**
   * Wraps a stream that other code owns, such as a framework; closing this leaves it open.
   *
   * @param handle the driver's handle; 0 for the legacy default stream
   */
  public static CudaStream borrowed(CudaDevice device, String name, long handle) {
    return new CudaStream(device, name, handle, true);
  }

  public CudaDevice device() {
    return device;
  }

  /** The handle for the driver and NCCL. */
  public long handle() {
    return handle;
  }

  /**
   * Enqueues a copy of host memory to the device. For memory that is not pinned the driver may wait
   * for the stream on this thread, for any time: see {@link BounceBuffers}.
   */
  public void copyToDevice(long to, long from, long bytes) {
    device.use();
    CudaLibrary.check(
        CudaFunctions.cuMemcpyHtoDAsync_v2(to, from, bytes, handle), copy(bytes, "to the device"));
  }

  /** Enqueues a copy of device memory to the host; for pinned memory see {@link #copyToDevice}. */
  public void copyToHost(long to, long from, long bytes) {
    device.use();
    CudaLibrary.check(
        CudaFunctions.cuMemcpyDtoHAsync_v2(to, from, bytes, handle), copy(bytes, "to the host"));
  }

  /** Enqueues a copy within the device. */
  public void copyOnDevice(long to, long from, long bytes) {
    device.use();
    CudaLibrary.check(
        CudaFunctions.cuMemcpyDtoDAsync_v2(to, from, bytes, handle), copy(bytes, "on the device"));
  }

  /** Enqueues zeroing of device memory. */
  public void clear(long to, long bytes) {
    device.use();
    CudaLibrary.check(
        CudaFunctions.cuMemsetD8Async(to, (byte) 0, bytes, handle),
        "zeroing " + bytes + " bytes on " + this);
  }

  private String copy(long bytes, String where) {
    return "a copy of " + bytes + " bytes " + where + " on " + this;
  }

  /** Makes later work of this stream run after a mark of any stream. */
  public void waitFor(CudaMark mark) {
    device.use();
    CudaLibrary.check(
        CudaFunctions.cuStreamWaitEvent(handle, mark.handle(), 0), "cuStreamWaitEvent on " + this);
  }

  /** Records a mark after all enqueued work. */
  public CudaMark mark() {
    device.use();
    return CudaMark.record(handle, toString());
  }

  /**
   * Waits until the stream is idle; an interrupt does not end the wait.
   *
   * @return false when the device still works at the deadline
   * @throws CudaException when the device failed
   */
  public boolean awaitIdle(Deadline deadline) {
    device.use();
    int result = CudaFunctions.cuStreamQuery(handle);
    while (result == CudaLibrary.NOT_READY && !deadline.expired()) {
      LockSupport.parkNanos(POLL_NANOS);
      result = CudaFunctions.cuStreamQuery(handle);
    }
    if (result == CudaLibrary.NOT_READY) {
      return false;
    }
    CudaLibrary.check(result, "the work on " + this);
    return true;
  }

  /** Waits for the enqueued work, at most 30 s, because its memory may be freed afterwards. */
  @Override
  public void close() {
    boolean unused = close(CLOSING);
  }

  /**
   * Closes the stream as {@link #close()}, with a timeout.
   *
   * @return whether the enqueued work has ended and the device works, so that its memory may be
   *     freed
   */
  public boolean close(Duration timeout) {
    if (closed || borrowed) {
      return true;
    }
    closed = true;
    boolean healthy = true;
    try {
      if (!awaitIdle(Deadline.after(timeout))) {
        LOG.warn("{}: work still runs after {}; the stream is left to the driver", this, timeout);
        return false;
      }
    } catch (CudaException e) {
      LOG.warn("{} ends with a failure of the device", this, e);
      healthy = false;
    }
    int result = CudaFunctions.cuStreamDestroy_v2(handle);
    if (result != CudaLibrary.SUCCESS) {
      LOG.warn("{}: cuStreamDestroy returned {}", this, result);
    }
    return healthy;
  }

  @Override
  public String toString() {
    return "stream " + name + " of " + device;
  }
}
