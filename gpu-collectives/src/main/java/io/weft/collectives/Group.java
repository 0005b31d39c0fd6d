package io.weft.collectives;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Operations on one or several communicators that run as one: no operation waits for one of another
 * communicator, so ranks may add them in different orders. Communicators are ordered by their first
 * appearance, never by a hash. Operations of one communicator keep their order as in {@link
 * Communicator#runGroup}.
 *
 * <p>Not thread-safe. May run several times.
 */
public final class Group {
  private static final AtomicLong THREADS = new AtomicLong();

  private final Map<Communicator, List<Operation>> operations = new LinkedHashMap<>();

  /** Adds an operation after those of the same communicator. */
  public Group add(Communicator communicator, Operation operation) {
    operations.computeIfAbsent(communicator, key -> new ArrayList<>()).add(operation);
    return this;
  }

  /**
   * Runs all operations and returns when all have ended.
   *
   * @throws CollectiveException the failure of the first communicator that failed, with those of
   *     the others suppressed
   */
  public void run() {
    List<FutureTask<Void>> others = new ArrayList<>();
    List<Communicator> order = List.copyOf(operations.keySet());
    for (int i = 1; i < order.size(); i++) {
      others.add(start(order.get(i)));
    }
    CollectiveException failure = null;
    if (!order.isEmpty()) {
      failure = failureOf(() -> order.get(0).runGroup(operations.get(order.get(0))), null);
    }
    for (FutureTask<Void> task : others) {
      failure = failureOf(() -> join(task), failure);
    }
    if (failure != null) {
      throw failure;
    }
  }

  private FutureTask<Void> start(Communicator communicator) {
    FutureTask<Void> task =
        new FutureTask<>(() -> communicator.runGroup(operations.get(communicator)), null);
    Thread thread = new Thread(task, "weft-group-" + THREADS.incrementAndGet());
    thread.setDaemon(true);
    thread.start();
    return task;
  }

  private static CollectiveException failureOf(Runnable part, CollectiveException before) {
    try {
      part.run();
      return before;
    } catch (RuntimeException e) {
      CollectiveException failure = asCollective(e);
      if (before == null) {
        return failure;
      }
      before.addSuppressed(failure);
      return before;
    }
  }

  /** Ends because every operation has its own deadline. */
  private static void join(FutureTask<Void> task) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          task.get();
          return;
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } catch (ExecutionException e) {
      throw asCollective(e.getCause());
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private Duration longestTimeout() {
    return operations.keySet().stream()
        .map(Communicator::timeout)
        .max(Duration::compareTo)
        .orElseThrow();
  }

  private static CollectiveException asCollective(Throwable cause) {
    return cause instanceof CollectiveException collective
        ? collective
        : new CollectiveException(
            CollectiveException.Kind.ABORTED, List.of(), "a group failed: " + cause, cause);
  }

  /**
   * Runs all operations on a lane. The group keeps its buffers until it ends, even when their
   * owners are closed before.
   *
   * @return an event that ends when all operations have ended
   * @throws CollectiveException of kind INVALID when a buffer was freed; nothing is queued then
   */
  public Event submit(Lane lane) {
    if (operations.isEmpty()) {
      return HostEvent.completed("an empty group");
    }
    String what = "a group on " + operations.size() + " communicators";
    List<HostEvent> uses = new ArrayList<>();
    try {
      operations.forEach(
          (communicator, parts) -> uses.add(HeldBuffers.hold(communicator.rank(), parts, what)));
      Event event =
          lane.submit(
              what,
              () -> {
                lane.awaitEnqueued(Deadline.after(longestTimeout()));
                run();
              });
      event.whenDone(cause -> uses.forEach(HostEvent::complete));
      return event;
    } catch (RuntimeException e) {
      uses.forEach(HostEvent::complete);
      throw e;
    }
  }
}
