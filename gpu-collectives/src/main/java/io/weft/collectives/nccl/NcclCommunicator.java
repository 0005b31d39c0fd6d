package io.weft.collectives.nccl;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.Topology;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.collectives.operation.Operation;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** One rank of the NCCL implementation: what moves elements is left to two engines. */
final class NcclCommunicator extends OrderedCommunicator implements DeviceCommunicator {
  private static final Duration SETTLING = Duration.ofSeconds(60);

  private final NcclOptions nccl;
  private final AtomicReference<CollectiveException> stop = new AtomicReference<>();
  private final AtomicLong waitNanos = new AtomicLong();
  private final Side collectives;
  private final Side pairs;
  private boolean closed;

  /** An engine and the thread that it belongs to. */
  private record Side(HostLane lane, Agreement agreement, NcclEngine engine) {}

  NcclCommunicator(
      Bootstrap bootstrap,
      CommunicatorOptions common,
      NcclOptions nccl,
      HostCommunicatorPair hosts) {
    super(Bootstrapped.of(bootstrap), common);
    this.nccl = nccl;
    this.collectives = side("", new Agreement(hosts.collectives(), waitNanos));
    try {
      this.pairs = side("-pairs", new Agreement(hosts.pairs(), waitNanos));
    } catch (RuntimeException e) {
      collectives.lane().close();
      collectives.engine().close(false, Duration.ZERO);
      throw e;
    }
  }

  private Side side(String suffix, Agreement agreement) {
    String name = "nccl-" + id() + "-" + rank() + suffix;
    NcclEngine engine = new NcclEngine(name, nccl, agreement, stop);
    return new Side(HostLane.open(name, timeout(), logPrefix()), agreement, engine);
  }

  /** Meets the other ranks in NCCL; first for collectives, then for pairs, as all ranks do. */
  void connect(byte[] collectivesId, byte[] pairsId, Deadline deadline) {
    run(collectives, "connecting", () -> collectives.engine().connect(collectivesId, deadline));
    run(pairs, "connecting", () -> pairs.engine().connect(pairsId, deadline));
  }

  private void run(Side side, String what, Lane.Work work) {
    awaitAll(List.of(submit(side, what, work)));
  }

  /** What fails on one side stops the other at once. */
  private Event submit(Side side, String what, Lane.Work work) {
    Event event = side.lane().submit(what, work);
    event.whenDone(
        cause -> {
          if (cause != null) {
            stopEngines(asCollective(cause));
          }
        });
    return event;
  }

  @Override
  public Topology topology() {
    return collectives.agreement().host().topology();
  }

  @Override
  protected Algorithm execute(Operation operation, Deadline deadline) {
    return executeGroup(List.of(operation), deadline);
  }

  @Override
  protected Algorithm executeGroup(List<Operation> operations, Deadline deadline) {
    waitNanos.set(0);
    List<Operation> together =
        operations.stream().filter(each -> each.kind().isCollective()).toList();
    List<Operation> between =
        operations.stream().filter(each -> !each.kind().isCollective()).toList();
    AtomicReference<Algorithm> algorithm = new AtomicReference<>(Algorithm.NCCL);
    List<Event> running = new ArrayList<>();
    if (!between.isEmpty()) {
      running.add(submit(pairs, "pairs", () -> pairs.engine().runPairs(between, deadline)));
    }
    if (!together.isEmpty()) {
      running.add(
          submit(
              collectives,
              "collectives",
              () -> algorithm.set(collectives.engine().runCollectives(together, deadline))));
    }
    awaitAll(running);
    return algorithm.get();
  }

  @Override
  public DeviceWindow register(CudaMemory memory) {
    AtomicReference<DeviceWindow> registered = new AtomicReference<>();
    AtomicReference<CollectiveException> refusal = new AtomicReference<>();
    runInTurn(
        "registering a window",
        deadline -> {
          WindowAgreement.refusal(collectives.agreement().host(), nccl.device(), memory, deadline)
              .ifPresent(refusal::set);
          if (refusal.get() == null) {
            registered.set(register(new DeviceWindow(memory, this::deregister), deadline));
          }
        });
    if (refusal.get() != null) {
      throw refusal.get();
    }
    return registered.get();
  }

  private DeviceWindow register(DeviceWindow window, Deadline deadline) {
    try {
      for (Side side : List.of(collectives, pairs)) {
        run(side, "registering a window", () -> side.engine().register(window, deadline));
      }
      return window;
    } catch (RuntimeException e) {
      window.close();
      throw e;
    }
  }

  private void deregister(DeviceWindow window) {
    for (Side side : List.of(collectives, pairs)) {
      try {
        settle(side.lane().submit("ending a window", () -> side.engine().deregister(window)));
      } catch (IllegalStateException e) {
        // The communicator was closed, and its windows with it.
      }
    }
  }

  /**
   * Returns only when the engines have let go of all buffers, also where it throws: the first
   * failure of both sides, as the later one is often that the other had stopped.
   */
  private void awaitAll(List<Event> running) {
    CollectiveException failure = null;
    for (Event each : running) {
      try {
        each.await(Deadline.after(timeout().multipliedBy(2).plus(SETTLING)));
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
      running.forEach(NcclCommunicator::settle);
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
        List.of(rank()),
        "rank "
            + rank()
            + (interrupted ? " was interrupted" : " got no answer from NCCL or the device")
            + " in communicator "
            + id(),
        cause);
  }

  /** Waits for an engine that has been stopped, whether this thread is interrupted or not. */
  private static void settle(Event event) {
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

  private void stopEngines(CollectiveException cause) {
    stop.compareAndSet(null, cause);
    for (Side side : List.of(collectives, pairs)) {
      side.agreement().fail(cause);
    }
  }

  @Override
  protected long lastWaitNanos() {
    return waitNanos.get();
  }

  /** NCCL is aborted on the threads of its communicators, hence on both at once. */
  @Override
  protected void announce(CollectiveException cause) {
    stopEngines(cause);
    for (Side side : List.of(collectives, pairs)) {
      try {
        Event unused = side.lane().submit("abort", side.engine()::abort);
      } catch (IllegalStateException e) {
        // Closed meanwhile, which ends it too.
      }
    }
  }

  @Override
  public void close() {
    boolean healthy =
        adopt(
            new CollectiveException(
                Kind.CLOSED, List.of(rank()), "rank " + rank() + " closed communicator " + id()));
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    boolean idle = awaitIdle(Deadline.after(timeout()));
    List<Event> closing = new ArrayList<>();
    for (Side side : List.of(collectives, pairs)) {
      side.agreement().close();
      closing.add(
          side.lane().submit("close", () -> side.engine().close(healthy && idle, nccl.linger())));
    }
    closing.forEach(NcclCommunicator::settle);
    collectives.lane().close();
    pairs.lane().close();
  }
}
