package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A queue of the device's work. It only enqueues: nothing here waits for the device but {@link
 * #close}, and copies of memory that is not pinned. One thread at a time; memory has to stay until
 * a mark behind its last use is reached.
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

  /** Makes a stream that runs beside all others, the legacy default stream included. */
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
   * A stream that somebody else made and ends, such as a framework's: closing this leaves it alone.
   *
   * @param handle what the driver knows it by; 0 for the legacy default stream
   */
  public static CudaStream borrowed(CudaDevice device, String name, long handle) {
    return new CudaStream(device, name, handle, true);
  }

  public CudaDevice device() {
    return device;
  }

  /** What the driver and NCCL know it by. */
  public long handle() {
    return handle;
  }

  /**
   * Enqueues a copy of host memory to the device. For memory that is not pinned the driver may wait
   * for the stream on this thread, however long that takes: see {@link BounceBuffers}.
   */
  public void copyToDevice(long to, long from, long bytes) {
    device.use();
    CudaLibrary.check(
        CudaFunctions.cuMemcpyHtoDAsync_v2(to, from, bytes, handle), copy(bytes, "to the device"));
  }

  /** Enqueues a copy of device memory to the host; see {@link #copyToDevice} on which memory. */
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

  /** Enqueues zeros for device memory. */
  public void clear(long to, long bytes) {
    device.use();
    CudaLibrary.check(
        CudaFunctions.cuMemsetD8Async(to, (byte) 0, bytes, handle),
        "zeros for " + bytes + " bytes on " + this);
  }

  private String copy(long bytes, String where) {
    return "a copy of " + bytes + " bytes " + where + " on " + this;
  }

  /** What is enqueued from now on runs after the mark, which any stream may have made. */
  public void waitFor(CudaMark mark) {
    device.use();
    CudaLibrary.check(
        CudaFunctions.cuStreamWaitEvent(handle, mark.handle(), 0), "cuStreamWaitEvent on " + this);
  }

  /** A mark behind everything enqueued so far. */
  public CudaMark mark() {
    device.use();
    return CudaMark.record(handle, toString());
  }

  /**
   * Waits until nothing is enqueued any more; an interrupt does not end the wait.
   *
   * @return false when the device still worked at the deadline
   * @throws CudaException when the device failed
   */
  public boolean awaitRest(Deadline deadline) {
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

  /** Waits, at most 30 s, for what is enqueued: memory behind it may be gone afterwards. */
  @Override
  public void close() {
    boolean unused = close(CLOSING);
  }

  /**
   * As {@link #close()}, with another patience.
   *
   * @return whether what was enqueued has ended and the device works: what it used may go
   */
  public boolean close(Duration patience) {
    if (closed || borrowed) {
      return true;
    }
    closed = true;
    boolean healthy = true;
    try {
      if (!awaitRest(Deadline.after(patience))) {
        LOG.warn("{}: work still runs after {}; the stream is left to the driver", this, patience);
        return false;
      }
    } catch (CudaException e) {
      LOG.warn("{} ends with a failure of the device", this, e);
      healthy = false;
    }
    int result = CudaFunctions.cuStreamDestroy_v2(handle);
    if (result != CudaLibrary.SUCCESS) {
      LOG.warn("{}: cuStreamDestroy gave {}", this, result);
    }
    return healthy;
  }

  @Override
  public String toString() {
    return "stream " + name + " of " + device;
  }
}
