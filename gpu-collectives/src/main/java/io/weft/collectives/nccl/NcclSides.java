package io.weft.collectives.nccl;

import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The two engines of a communicator, one for collectives and one for pairs. They fail together: a
 * failure of one stops the other. Thread-safe.
 */
final class NcclSides {
  private final Self self;
  private final AtomicReference<CollectiveException> stop;
  private final NcclSide collectives;
  private final NcclSide pairs;

  /** Identifies the rank that the engines belong to. */
  record Self(UniqueId id, int rank, Duration timeout, String logPrefix) {}

  private NcclSides(
      Self self, AtomicReference<CollectiveException> stop, NcclSide collectives, NcclSide pairs) {
    this.self = self;
    this.stop = stop;
    this.collectives = collectives;
    this.pairs = pairs;
  }

  /** Opens both, each with a thread and a stream. They are not connected yet. */
  static NcclSides open(
      Self self, NcclOptions options, HostCommunicatorPair pair, AtomicLong waitNanos) {
    AtomicReference<CollectiveException> stop = new AtomicReference<>();
    NcclSide collectives =
        side(self, "", options, new Agreement(pair.collectives(), waitNanos), stop);
    try {
      Agreement agreement = new Agreement(pair.pairs(), waitNanos);
      return new NcclSides(self, stop, collectives, side(self, "-pairs", options, agreement, stop));
    } catch (RuntimeException e) {
      collectives.lane().close();
      collectives.engine().close(false, Duration.ZERO);
      throw e;
    }
  }

  private static NcclSide side(
      Self self,
      String suffix,
      NcclOptions options,
      Agreement agreement,
      AtomicReference<CollectiveException> stop) {
    String name = "nccl-" + self.id() + "-" + self.rank() + suffix;
    NcclEngine engine = new NcclEngine(name, options, agreement, stop);
    return new NcclSide(HostLane.open(name, self.timeout(), self.logPrefix()), agreement, engine);
  }

  NcclSide collectives() {
    return collectives;
  }

  NcclSide pairs() {
    return pairs;
  }

  /** Both sides, that for collectives first. */
  List<NcclSide> both() {
    return List.of(collectives, pairs);
  }

  /** Runs work of an engine; see {@link #awaitAll}. */
  void run(NcclSide side, String what, Lane.Work work) {
    awaitAll(List.of(submit(side, what, work)));
  }

  /** Submits work of an engine. Its failure stops the other engine at once. */
  Event submit(NcclSide side, String what, Lane.Work work) {
    Event event = side.lane().submit(what, work);
    event.whenDone(
        cause -> {
          if (cause != null) {
            stopEngines(asCollective(cause));
          }
        });
    return event;
  }

  /** Runs work of an engine that has been stopped. Its failure does not stop the other engine. */
  void runAlone(NcclSide side, String what, Lane.Work work) {
    Event event = side.lane().submit(what, work);
    try {
      event.await(Deadline.after(self.timeout().plus(NcclSide.SETTLING)));
    } catch (EventFailedException e) {
      throw asCollective(e.getCause());
    } catch (EventTimeoutException e) {
      throw givenUp(e);
    }
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
        each.await(Deadline.after(self.timeout().multipliedBy(2).plus(NcclSide.SETTLING)));
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
      running.forEach(NcclSide::settle);
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
    for (NcclSide side : both()) {
      side.agreement().fail(cause);
    }
  }

  /** Aborts NCCL on the threads of its communicators, so on both at the same time. */
  void abort(CollectiveException cause) {
    stopEngines(cause);
    for (NcclSide side : both()) {
      try {
        Event unused = side.lane().submit("abort", side.engine()::abort);
      } catch (IllegalStateException e) {
        // Closed in the meantime, which ends it too.
      }
    }
  }

  /** Ends both; together with the other ranks if all are well. */
  void close(boolean healthy, Duration linger) {
    List<Event> closing = new ArrayList<>();
    for (NcclSide side : both()) {
      side.agreement().close();
      closing.add(side.lane().submit("close", () -> side.engine().close(healthy, linger)));
    }
    closing.forEach(NcclSide::settle);
    collectives.lane().close();
    pairs.lane().close();
  }
}
