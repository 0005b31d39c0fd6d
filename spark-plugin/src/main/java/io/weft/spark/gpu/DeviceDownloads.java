package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventTimeoutException;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemoryPool;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies from the device to any memory of the host, one copy after the other, through two pinned
 * buffers. After a copy has failed, nothing is copied until the device is idle again. Thread-safe;
 * owns a lane.
 */
final class DeviceDownloads implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceDownloads.class);
  private static final long PIECE_BYTES = 4L << 20;
  private static final long POLL_NANOS = 20_000;
  private static final Duration IDLE_TIMEOUT = Duration.ofSeconds(1);
  private static final Duration POLL = Duration.ofMillis(10);

  private final CudaLane lane;
  private final BounceBuffers bounce;
  private final Duration timeout;

  /** Set by the lane's thread, read by the thread that closes. */
  private volatile Throwable failed;

  DeviceDownloads(CudaDevice device, CudaMemoryPool pinned, Duration timeout) {
    this.lane = CudaLane.open(device, "downloads", timeout, Priority.HIGHEST);
    this.bounce = new BounceBuffers(lane.stream(), pinned, PIECE_BYTES);
    this.timeout = timeout;
  }

  /**
   * Copies to the host. Both memory ranges must stay valid until the event is released.
   *
   * @param what the name of the copy, for messages
   * @param to address on the host
   * @param from address on the device
   * @param after event that must complete first
   * @return complete when the bytes are on the host
   */
  Event copy(String what, long to, long from, long bytes, Event after) {
    return lane.submit(what, () -> copyNow(to, from, bytes), after);
  }

  private void copyNow(long to, long from, long bytes) {
    awaitIdle(POLL);
    if (failed != null) {
      throw new IllegalStateException(obstacle().orElseThrow(), failed);
    }
    try {
      bounce.copyToHost(to, from, bytes, mark -> await(mark, timeout));
    } catch (RuntimeException e) {
      failed = e;
      awaitIdle(IDLE_TIMEOUT);
      throw e;
    }
  }

  /**
   * Waits after a failure until the device has completed the enqueued work, so that the buffers can
   * be reused.
   */
  private void awaitIdle(Duration most) {
    if (failed == null) {
      return;
    }
    try (CudaMark mark = lane.stream().mark()) {
      await(mark, most);
    } catch (CudaException | EventTimeoutException e) {
      LOG.debug("{} is not idle after a failure: {}", lane, e.getMessage());
      return;
    }
    bounce.reset();
    failed = null;
  }

  /**
   * Returns why no copies are possible at the moment; starts a check whether the device is idle
   * again.
   */
  Optional<String> obstacle() {
    Throwable cause = failed;
    if (cause == null) {
      return Optional.empty();
    }
    try {
      Event unused = lane.submit("a check whether the device is idle", () -> awaitIdle(POLL));
    } catch (IllegalStateException e) {
      LOG.debug("{}: {}", lane, e.getMessage());
    }
    return Optional.of(
        "copies from the GPU to the host have failed, and it is not idle since: "
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

  /** Waits for copies in flight; copies that have not started fail. */
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
