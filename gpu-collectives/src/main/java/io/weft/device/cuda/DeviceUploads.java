package io.weft.device.cuda;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventTimeoutException;
import io.weft.device.Lane;
import io.weft.memory.Memory;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Uploads host memory of any kind, one upload after the other: its pieces are gathered in pinned
 * memory as they are to lie on the device and copied from there, while the next ones are gathered
 * in a second buffer. Callers wait for nothing but the events that they get.
 *
 * <p>Thread-safe. Owns a lane with its two threads and its stream, and two pinned buffers.
 */
public final class DeviceUploads implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceUploads.class);
  private static final int BUFFERS = 2;
  private static final long POLL_NANOS = 20_000;

  /** A shorter gap is copied along, as zeros, for the sake of one copy instead of two. */
  private static final long LARGEST_GAP = 4096;

  private final CudaLane lane;
  private final CudaMemoryPool pinned;
  private final long pieceBytes;
  private final Duration patience;

  // For the lane's thread.
  private final CudaMemory[] buffers = new CudaMemory[BUFFERS];
  private final CudaMark[] marks = new CudaMark[BUFFERS];
  private int next;
  private long start;
  private long length;

  /**
   * A run of host memory and its place on the device.
   *
   * @param from its address
   * @param offset in the device memory that is uploaded to
   * @param bytes 0 or more
   */
  public record Run(long from, long offset, long bytes) {
    public Run {
      if (offset < 0 || bytes < 0) {
        throw new IllegalArgumentException(bytes + " bytes at " + offset);
      }
    }
  }

  private DeviceUploads(CudaLane lane, CudaMemoryPool pinned, long pieceBytes, Duration patience) {
    this.lane = lane;
    this.pinned = pinned;
    this.pieceBytes = pieceBytes;
    this.patience = patience;
  }

  /**
   * Opens a lane of this name; its pinned buffers are taken with the first upload.
   *
   * @param pinned a pool of pinned memory of the device
   * @param pieceBytes of each of the two buffers, more than 4 KiB: the largest copy
   * @param patience the most that an upload may wait for the copy before the last one
   */
  public static DeviceUploads open(
      CudaDevice device, String name, CudaMemoryPool pinned, long pieceBytes, Duration patience) {
    if (pieceBytes <= LARGEST_GAP) {
      throw new IllegalArgumentException("pieces of " + pieceBytes + " bytes are too small");
    }
    CudaLane lane = CudaLane.open(device, name, patience, Lane.Priority.HIGHEST);
    return new DeviceUploads(lane, pinned, pieceBytes, patience);
  }

  /** The lane on which uploads run, for events behind them. */
  public CudaLane lane() {
    return lane;
  }

  /**
   * Uploads runs.
   *
   * @param what this is, for messages
   * @param runs in the order of their places, which do not overlap; their memory has to stay until
   *     the event is recorded, and may go then
   * @param to keeps its memory until the upload has ended, also when it is closed before
   * @return recorded when all is enqueued, complete when all is on the device
   * @throws IndexOutOfBoundsException when a run has no place in the memory
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

  /** Gathers as much as there is room for; returns how much. */
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
    Deadline deadline = Deadline.after(patience);
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

  /** Waits for what is under way, as {@link CudaLane#close}; what has not started fails. */
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
