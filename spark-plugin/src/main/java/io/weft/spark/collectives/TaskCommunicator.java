package io.weft.spark.collectives;

import io.weft.collectives.Communicator;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A task's communicator, from its first request to the end of the task. Thread-safe: the task's
 * threads request it, Spark's threads report the end of the task.
 */
final class TaskCommunicator implements TaskCompletionListener, TaskFailureListener {
  private static final long KILL_GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private static final Logger LOG = LoggerFactory.getLogger(TaskCommunicator.class);

  private final BarrierTask task;
  private final ExecutorCollectives collectives;
  private final Object state = new Object();
  private volatile Communicator communicator;
  private boolean ended;

  private long killedSince;

  TaskCommunicator(BarrierTask task, ExecutorCollectives collectives) {
    this.task = task;
    this.collectives = collectives;
  }

  /** Registers for the end of the task. */
  void listen() {
    var unused = task.context().addTaskFailureListener(this).addTaskCompletionListener(this);
  }

  /** Waits for the other tasks under a lock that the end of the task does not need. */
  synchronized Communicator get(Duration timeout) {
    if (communicator == null) {
      keep(collectives.create(task, timeout));
    }
    return communicator;
  }

  private void keep(Communicator created) {
    synchronized (state) {
      if (!ended) {
        communicator = created;
        collectives.opened(created);
        return;
      }
    }
    created.close();
    throw new IllegalStateException(task.name() + " has ended and gets no communicator");
  }

  Optional<Communicator> current() {
    return Optional.ofNullable(communicator);
  }

  /**
   * Aborts the communicator if Spark has killed the task without an interrupt of its thread. Waits
   * a little before: tasks are killed because another one failed, and its reason should come first.
   * Used by one thread.
   */
  void checkKilled() {
    if (communicator == null || communicator.failure().isPresent() || !task.isKilled()) {
      return;
    }
    long now = System.nanoTime();
    if (killedSince == 0) {
      killedSince = now;
    } else if (now - killedSince > KILL_GRACE_NANOS) {
      communicator.abort("its task was killed: " + task.killReason());
    }
  }

  @Override
  public void onTaskFailure(TaskContext context, Throwable cause) {
    if (communicator != null) {
      communicator.abort("its task failed: " + cause);
    }
  }

  @Override
  public void onTaskCompletion(TaskContext context) {
    close();
  }

  /** Closes the communicator and refuses later requests. */
  void close() {
    Communicator open;
    synchronized (state) {
      ended = true;
      open = communicator;
    }
    try {
      if (open != null) {
        open.close();
      }
    } catch (RuntimeException e) {
      LOG.warn("The communicator of {} was not closed completely", task.name(), e);
    } finally {
      collectives.ended(task, this);
    }
  }
}
