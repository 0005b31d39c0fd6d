package io.weft.spark.gpu;

import io.weft.device.Deadline;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Limits the number of tasks that use a device at a time. A task holds device memory that cannot be
 * spilled while it waits for more, so too many tasks could block each other. After a timeout a task
 * continues without admission, because admitted tasks may be waiting for it, as in a barrier stage.
 * Thread-safe.
 */
final class DeviceTurns {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceTurns.class);
  private static final long POLL_MILLIS = 100;

  private final int most;
  private final Duration timeout;
  private final Semaphore free;

  /** The value tells whether the task is admitted, or continues without admission. */
  private final Map<Long, Boolean> tasks = new ConcurrentHashMap<>();

  /**
   * Starts without tasks.
   *
   * @param most tasks at a time, 1 or more
   * @param timeout limit of a task's wait
   */
  DeviceTurns(int most, Duration timeout) {
    this.most = most;
    this.timeout = timeout;
    this.free = new Semaphore(most, true);
  }

  /**
   * Waits for admission.
   *
   * @param cancelCheck is called during the wait, and throws if the task is to stop
   * @return whether the task is new, so the caller must report its end
   */
  boolean take(long task, Runnable cancelCheck) {
    if (tasks.containsKey(task)) {
      return false;
    }
    Deadline deadline = Deadline.after(timeout);
    boolean turn = acquired();
    while (!turn) {
      cancelCheck.run();
      if (deadline.expired()) {
        LOG.warn("Task {} continues beside the {} for which the GPU has memory", task, most);
        break;
      }
      turn = acquired();
    }
    tasks.put(task, turn);
    return true;
  }

  private boolean acquired() {
    try {
      return free.tryAcquire(POLL_MILLIS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for admission to the GPU", e);
    }
  }

  /** Ends the admission of a task that has ended. */
  void giveBack(long task) {
    if (Boolean.TRUE.equals(tasks.remove(task))) {
      free.release();
    }
  }

  /** Number of tasks that use the device. */
  int taken() {
    return tasks.size();
  }
}
