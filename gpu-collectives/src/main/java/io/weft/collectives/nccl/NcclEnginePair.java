package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The two engines of a communicator, one for collectives and one for pairs. They fail together: a
 * failure of one stops the other. Thread-safe.
 */
final class NcclEnginePair {
  private final Self self;
  private final AtomicReference<CollectiveException> stop;
  private final NcclEngineLane collectives;
  private final NcclEngineLane pairs;

  /** Identifies the rank that the engines belong to. */
  record Self(UniqueId id, int rank, Duration timeout, String logPrefix) {}

  private NcclEnginePair(
      Self self,
      AtomicReference<CollectiveException> stop,
      NcclEngineLane collectives,
      NcclEngineLane pairs) {
    this.self = self;
    this.stop = stop;
    this.collectives = collectives;
    this.pairs = pairs;
  }

  /** Opens both, each with a thread and a stream. They are not connected yet. */
  static NcclEnginePair open(
      Self self, NcclOptions options, HostCommunicatorPair pair, AtomicLong waitNanos) {
    AtomicReference<CollectiveException> stop = new AtomicReference<>();
    NcclEngineLane collectives =
        side(self, "", options, new OperationAgreement(pair.collectives(), waitNanos), stop);
    try {
      OperationAgreement agreement = new OperationAgreement(pair.pairs(), waitNanos);
      return new NcclEnginePair(
          self, stop, collectives, side(self, "-pairs", options, agreement, stop));
    } catch (RuntimeException e) {
      collectives.lane().close();
      boolean unused = collectives.engine().close(false, Duration.ZERO);
      throw e;
    }
  }

  private static NcclEngineLane side(
      Self self,
      String suffix,
      NcclOptions options,
      OperationAgreement agreement,
      AtomicReference<CollectiveException> stop) {
    String name = "nccl-" + self.id() + "-" + self.rank() + suffix;
    HostLane lane = HostLane.open(name, self.timeout(), self.logPrefix());
    try {
      return new NcclEngineLane(lane, agreement, new NcclEngine(name, options, agreement, stop));
    } catch (RuntimeException e) {
      lane.close();
      throw e;
    }
  }

  NcclEngineLane collectives() {
    return collectives;
  }

  NcclEngineLane pairs() {
    return pairs;
  }

  /** Both sides, that for collectives first. */
  List<NcclEngineLane> both() {
    return List.of(collectives, pairs);
  }

  /** Runs work of an engine; see {@link #awaitAll}. */
  void run(NcclEngineLane side, String what, Lane.Work work) {
    awaitAll(List.of(submit(side, what, work)));
  }

  /** Submits work of an engine. Its failure stops the other engine at once. */
  Event submit(NcclEngineLane side, String what, Lane.Work work) {
    Event event = side.lane().submit(what, work);
    event.whenDone(
        cause -> {
          if (cause != null) {
            stopEngines(asCollective(cause));
          }
        });
    return event;
  }

  /**
   * Waits until both engines have released all buffers, and only then returns or throws. It throws
   * the first failure of both sides, because the later one often only reports that the other side
   * had stopped.
   */
  void awaitAll(List<Event> running) {
    CollectiveException failure = null;
    for (Event each : running) {
      try {
        each.await(Deadline.after(self.timeout().multipliedBy(2).plus(NcclEngineLane.SETTLING)));
      } catch (EventFailedException e) {
        failure = failure == null ? asCollective(e.getCause()) : failure;
      } catch (EventTimeoutException e) {
        failure = failure == null ? givenUp(e) : failure;
      }
      if (failure != null) {
        stopEngines(failure);
      }
    }
    if (failure != null) {
      running.forEach(NcclEngineLane::settle);
      throw stop.get();
    }
  }

  private static CollectiveException asCollective(Throwable cause) {
    return cause instanceof CollectiveException collective
        ? collective
        : new CollectiveException(Kind.IO, List.of(), String.valueOf(cause.getMessage()), cause);
  }

  private CollectiveException givenUp(EventTimeoutException cause) {
    boolean interrupted = Thread.currentThread().isInterrupted();
    return new CollectiveException(
        interrupted ? Kind.ABORTED : Kind.TIMEOUT,
        List.of(self.rank()),
        "rank "
            + self.rank()
            + (interrupted ? " was interrupted" : " got no answer from NCCL or the device")
            + " in communicator "
            + self.id(),
        cause);
  }

  private void stopEngines(CollectiveException cause) {
    stop.compareAndSet(null, cause);
    for (NcclEngineLane side : both()) {
      side.agreement().fail(cause);
    }
  }

  /** Aborts NCCL on the threads of its communicators, so on both at the same time. */
  void abort(CollectiveException cause) {
    stopEngines(cause);
    for (NcclEngineLane side : both()) {
      try {
        Event unused = side.lane().submit("abort", side.engine()::abort);
      } catch (IllegalStateException e) {
        // Closed in the meantime, which ends it too.
      }
    }
  }

  /**
   * Ends both; together with the other ranks if all are well.
   *
   * @return whether the device is known to be idle
   */
  boolean close(boolean healthy, Duration linger) {
    List<Event> closing = new ArrayList<>();
    AtomicInteger idle = new AtomicInteger();
    for (NcclEngineLane side : both()) {
      side.agreement().close();
      closing.add(
          side.lane()
              .submit(
                  "close",
                  () -> {
                    if (side.engine().close(healthy, linger)) {
                      idle.incrementAndGet();
                    }
                  }));
    }
    closing.forEach(NcclEngineLane::settle);
    collectives.lane().close();
    pairs.lane().close();
    return idle.get() == closing.size();
  }

  /**
   * An engine and the thread that it belongs to.
   *
   * @param lane runs all work of the engine
   * @param agreement of the engine
   */
  record NcclEngineLane(HostLane lane, OperationAgreement agreement, NcclEngine engine) {
    static final Duration SETTLING = Duration.ofSeconds(60);

    /** Waits for an engine that has been stopped, even if this thread is interrupted. */
    static void settle(Event event) {
      boolean interrupted = Thread.interrupted();
      Deadline deadline = Deadline.after(SETTLING);
      boolean settled = false;
      while (!settled && !deadline.expired()) {
        try {
          event.await(deadline);
          settled = true;
        } catch (EventFailedException e) {
          settled = true;
        } catch (EventTimeoutException e) {
          interrupted |= Thread.interrupted();
        }
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
