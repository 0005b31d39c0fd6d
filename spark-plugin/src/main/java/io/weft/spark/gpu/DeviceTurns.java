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
 * Which tasks work on a device at a time. Each holds memory there that cannot be spilled while it
 * waits for more, so that too many of them would all wait for one another. Who has waited long
 * enough goes on without a turn: those before may be waiting for it, as in a barrier stage.
 * Thread-safe.
 */
final class DeviceTurns {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceTurns.class);
  private static final long LOOK_MILLIS = 100;

  private final int most;
  private final Duration patience;
  private final Semaphore free;

  /** Whether each has a turn, or works without. */
  private final Map<Long, Boolean> tasks = new ConcurrentHashMap<>();

  /**
   * All turns are free.
   *
   * @param most tasks at a time, 1 or more
   * @param patience the most that a task waits
   */
  DeviceTurns(int most, Duration patience) {
    this.most = most;
    this.patience = patience;
    this.free = new Semaphore(most, true);
  }

  /**
   * Waits for a turn.
   *
   * @param wanted is asked while it waits, and throws when the task is not to go on
   * @return whether the task is new, and has to say when it ends
   */
  boolean take(long task, Runnable wanted) {
    if (tasks.containsKey(task)) {
      return false;
    }
    Deadline deadline = Deadline.after(patience);
    boolean turn = acquired();
    while (!turn) {
      wanted.run();
      if (deadline.expired()) {
        LOG.warn("Task {} goes on beside the {} for which the GPU has memory", task, most);
        break;
      }
      turn = acquired();
    }
    tasks.put(task, turn);
    return true;
  }

  private boolean acquired() {
    try {
      return free.tryAcquire(LOOK_MILLIS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for a turn on the GPU", e);
    }
  }

  /** A task has ended, and so has its turn. */
  void giveBack(long task) {
    if (Boolean.TRUE.equals(tasks.remove(task))) {
      free.release();
    }
  }

  /** Tasks that work on the device. */
  int taken() {
    return tasks.size();
  }
}
