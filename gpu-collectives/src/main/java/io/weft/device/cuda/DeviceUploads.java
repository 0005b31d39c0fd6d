package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventTimeoutException;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.memory.Memory;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Uploads host memory of any kind, one upload after the other. Pieces are gathered in pinned
 * memory, laid out as on the device, and copied from there. Meanwhile the next pieces are gathered
 * in a second buffer. Callers wait only for the events that they get.
 *
 * <p>Thread-safe. Owns a lane with its two threads and its stream, and two pinned buffers.
 */
public final class DeviceUploads implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceUploads.class);
  private static final int BUFFERS = 2;
  private static final long POLL_NANOS = 20_000;

  /** A shorter gap is copied as zeros, so that one copy replaces two. */
  private static final long LARGEST_GAP = 4096;

  private final CudaLane lane;
  private final CudaMemoryPool pinned;
  private final long pieceBytes;
  private final Duration timeout;

  // Confined to the lane's thread.
  private final CudaMemory[] buffers = new CudaMemory[BUFFERS];
  private final CudaMark[] marks = new CudaMark[BUFFERS];
  private int next;
  private long start;
  private long length;

  /**
   * A run of host memory and its place on the device.
   *
   * @param from the address on the host
   * @param offset the offset in the device memory
   * @param bytes 0 or more
   */
  public record Run(long from, long offset, long bytes) {
    public Run {
      if (offset < 0 || bytes < 0) {
        throw new IllegalArgumentException(bytes + " bytes at " + offset);
      }
    }
  }

  private DeviceUploads(CudaLane lane, CudaMemoryPool pinned, long pieceBytes, Duration timeout) {
    this.lane = lane;
    this.pinned = pinned;
    this.pieceBytes = pieceBytes;
    this.timeout = timeout;
  }

  /**
   * Opens a lane of this name; its pinned buffers are taken with the first upload.
   *
   * @param pinned a pool of pinned memory of the device
   * @param pieceBytes the size of each of the two buffers and of the longest copy, more than 4 KiB
   * @param timeout the longest wait of an upload for the copy before the last one
   */
  public static DeviceUploads open(
      CudaDevice device, String name, CudaMemoryPool pinned, long pieceBytes, Duration timeout) {
    if (pieceBytes <= LARGEST_GAP) {
      throw new IllegalArgumentException("pieces of " + pieceBytes + " bytes are too small");
    }
    CudaLane lane = CudaLane.open(device, name, timeout, Lane.Priority.HIGHEST);
    return new DeviceUploads(lane, pinned, pieceBytes, timeout);
  }

  /** The lane of the uploads, for later events. */
  public CudaLane lane() {
    return lane;
  }

  /**
   * Uploads runs.
   *
   * @param what a name for messages
   * @param runs in the order of their places, which do not overlap; their memory must stay until
   *     the event is recorded
   * @param to the target, which keeps its memory until the upload has ended, also after it is
   *     closed
   * @return recorded when all is enqueued, complete when all is on the device
   * @throws IndexOutOfBoundsException when a run is not within the target
   */
  public Event upload(String what, List<Run> runs, CudaMemory to) {
    for (Run run : runs) {
      if (run.bytes() > to.bytes() - run.offset()) {
        throw new IndexOutOfBoundsException(run + " of " + to.bytes() + " bytes");
      }
    }
    long address = to.address();
    Event event = lane.submit(what, () -> copy(runs, address));
    to.usedUntil(event);
    return event;
  }

  private void copy(List<Run> runs, long to) {
    start = 0;
    length = 0;
    for (Run run : runs) {
      long done = 0;
      while (done < run.bytes()) {
        done += gather(run.from() + done, run.offset() + done, run.bytes() - done, to);
      }
    }
    flush(to);
  }

  /** Gathers as many bytes as fit; returns their number. */
  private long gather(long from, long offset, long bytes, long to) {
    long gap = offset - (start + length);
    if (length > 0 && (gap < 0 || gap > LARGEST_GAP || length + gap >= pieceBytes)) {
      flush(to);
    }
    if (length == 0) {
      awaitBuffer();
      start = offset;
    } else if (gap > 0) {
      Memory.setMemory(buffers[next].address() + length, gap, (byte) 0);
      length += gap;
    }
    long piece = Math.min(bytes, pieceBytes - length);
    Memory.copy(from, buffers[next].address() + length, piece);
    length += piece;
    if (length == pieceBytes) {
      flush(to);
    }
    return piece;
  }

  private void awaitBuffer() {
    if (buffers[next] == null) {
      buffers[next] = pinned.take(pieceBytes);
    }
    if (marks[next] == null) {
      return;
    }
    Deadline deadline = Deadline.after(timeout);
    while (!marks[next].isReached()) {
      if (deadline.expired()) {
        throw new EventTimeoutException(
            "a copy to " + lane.stream().device() + " did not end within " + deadline);
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
    marks[next].close();
    marks[next] = null;
  }

  private void flush(long to) {
    if (length > 0) {
      lane.stream().copyToDevice(to + start, buffers[next].address(), length);
      marks[next] = lane.stream().mark();
      next = (next + 1) % BUFFERS;
      length = 0;
    }
  }

  /** Waits for running uploads, as {@link CudaLane#close}; uploads that have not started fail. */
  @Override
  public void close() {
    lane.close();
    for (int i = 0; i < BUFFERS; i++) {
      if (marks[i] != null && !marks[i].isReached()) {
        LOG.warn("{} still copies {} bytes of pinned memory: they are kept", lane, pieceBytes);
        continue;
      }
      if (marks[i] != null) {
        marks[i].close();
        marks[i] = null;
      }
      if (buffers[i] != null) {
        buffers[i].close();
        buffers[i] = null;
      }
    }
  }
}
