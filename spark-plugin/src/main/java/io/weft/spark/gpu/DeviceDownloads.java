package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventTimeoutException;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMark;
import io.weft.device.cuda.CudaMemoryPool;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies from the device to any memory of the host, one after the other, through two pinned
 * buffers. After a copy that failed nothing is copied until the device has come to rest.
 * Thread-safe; owns a lane.
 */
final class DeviceDownloads implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceDownloads.class);
  private static final long PIECE_BYTES = 4L << 20;
  private static final long POLL_NANOS = 20_000;
  private static final Duration REST = Duration.ofSeconds(1);
  private static final Duration LOOK = Duration.ofMillis(10);

  private final CudaLane lane;
  private final BounceBuffers bounce;
  private final Duration patience;

  /** For the lane's thread, and for who closes. */
  private volatile Throwable failed;

  DeviceDownloads(CudaDevice device, CudaMemoryPool pinned, Duration patience) {
    this.lane = CudaLane.open(device, "downloads", patience, Priority.HIGHEST);
    this.bounce = new BounceBuffers(lane.stream(), pinned, PIECE_BYTES);
    this.patience = patience;
  }

  /**
   * Copies to the host. Both runs of memory have to stay until the event is released.
   *
   * @param what this is, for messages
   * @param to address on the host
   * @param from address on the device
   * @param after what has to end before
   * @return complete when the bytes are there
   */
  Event copy(String what, long to, long from, long bytes, Event after) {
    return lane.submit(what, () -> copyNow(to, from, bytes), after);
  }

  private void copyNow(long to, long from, long bytes) {
    rest(LOOK);
    if (failed != null) {
      throw new IllegalStateException(obstacle().orElseThrow(), failed);
    }
    try {
      bounce.copyToHost(to, from, bytes, mark -> await(mark, patience));
    } catch (RuntimeException e) {
      failed = e;
      rest(REST);
      throw e;
    }
  }

  /** After a failure: once the device has done what was enqueued, the buffers can be used again. */
  private void rest(Duration most) {
    if (failed == null) {
      return;
    }
    try (CudaMark mark = lane.stream().mark()) {
      await(mark, most);
    } catch (CudaException | EventTimeoutException e) {
      LOG.debug("{} is not at rest after a failure: {}", lane, e.getMessage());
      return;
    }
    bounce.reset();
    failed = null;
  }

  /** Why nothing can be copied at the moment; has it looked at whether that has changed. */
  Optional<String> obstacle() {
    Throwable cause = failed;
    if (cause == null) {
      return Optional.empty();
    }
    try {
      Event unused = lane.submit("a look at whether it is at rest", () -> rest(LOOK));
    } catch (IllegalStateException e) {
      LOG.debug("{}: {}", lane, e.getMessage());
    }
    return Optional.of(
        "copies from the GPU to the host have failed, and it is not at rest since: "
            + cause.getMessage());
  }

  private void await(CudaMark mark, Duration most) {
    Deadline deadline = Deadline.after(most);
    while (!mark.isReached()) {
      if (deadline.expired()) {
        throw new EventTimeoutException("a copy to the host did not end within " + deadline);
      }
      LockSupport.parkNanos(this, POLL_NANOS);
    }
  }

  /** Waits for what is under way; what has not started fails. */
  @Override
  public void close() {
    lane.close();
    if (failed == null) {
      bounce.close();
    } else {
      LOG.warn("{} may still copy: its pinned memory is kept", lane);
    }
  }
}
