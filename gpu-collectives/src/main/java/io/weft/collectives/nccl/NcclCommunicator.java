package io.weft.collectives.nccl;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.Topology;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.ReduceOp;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.replay.CapturesGraphs;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaMemory;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/** One rank of the NCCL implementation: what moves elements is left to two engines. */
final class NcclCommunicator extends OrderedCommunicator
    implements DeviceCommunicator, CapturesGraphs {
  private final NcclOptions nccl;
  private final CommunicatorFactory hosts;
  private final AtomicReference<CollectiveException> stop = new AtomicReference<>();
  private final AtomicLong waitNanos = new AtomicLong();
  private final NcclSide collectives;
  private final NcclSide pairs;
  private boolean closed;

  NcclCommunicator(
      Bootstrap bootstrap,
      CommunicatorOptions common,
      NcclOptions nccl,
      CommunicatorFactory hosts,
      HostCommunicatorPair pair) {
    super(Bootstrapped.of(bootstrap), common);
    this.nccl = nccl;
    this.hosts = hosts;
    this.collectives = side("", new Agreement(pair.collectives(), waitNanos));
    try {
      this.pairs = side("-pairs", new Agreement(pair.pairs(), waitNanos));
    } catch (RuntimeException e) {
      collectives.lane().close();
      collectives.engine().close(false, Duration.ZERO);
      throw e;
    }
  }

  private NcclSide side(String suffix, Agreement agreement) {
    String name = "nccl-" + id() + "-" + rank() + suffix;
    NcclEngine engine = new NcclEngine(name, nccl, agreement, stop);
    return new NcclSide(HostLane.open(name, timeout(), logPrefix()), agreement, engine);
  }

  /** Meets the other ranks in NCCL; first for collectives, then for pairs, as all ranks do. */
  void connect(byte[] collectivesId, byte[] pairsId, Deadline deadline) {
    run(collectives, "connecting", () -> collectives.engine().connect(collectivesId, deadline));
    run(pairs, "connecting", () -> pairs.engine().connect(pairsId, deadline));
  }

  /** Takes over what was split off another one; first for collectives, then for pairs. */
  void connect(NcclComm forCollectives, NcclComm forPairs, Deadline deadline) {
    run(collectives, "connecting", () -> collectives.engine().connect(forCollectives, deadline));
    run(pairs, "connecting", () -> pairs.engine().connect(forPairs, deadline));
  }

  /** Adds what NCCL splits off: first that for collectives, then that for pairs. */
  void splitBoth(List<NcclComm> parts, int color, int key, Deadline deadline) {
    for (NcclSide side : List.of(collectives, pairs)) {
      run(side, "splitting", () -> side.engine().split(parts, color, key, deadline));
    }
  }

  /** Breaks it, unless it is broken, and returns when nothing of it runs any more. */
  void retire(Deadline deadline) {
    abort("what is left of it is made into another one");
    boolean unused = awaitIdle(deadline);
    for (NcclSide side : List.of(collectives, pairs)) {
      NcclSide.settle(side.lane().submit("retiring", side.engine()::abort));
    }
  }

  /** Why {@link #shrinkBoth} is impossible; empty where it is not. After {@link #retire}. */
  Optional<String> whyNoShrinking() {
    if (!nccl.shrinks()) {
      return Optional.of("its options do not keep what breaks");
    }
    Optional<String> reason = NcclLibrary.loaded().whyNoShrinking();
    boolean kept = collectives.engine().isShrinkable() && pairs.engine().isShrinkable();
    return reason.isPresent() || kept
        ? reason
        : Optional.of(
            "operations still ran when it broke, or NCCL's network failed, so it had to be aborted");
  }

  /** Adds what NCCL makes of the ranks that are left: for collectives, then for pairs. */
  void shrinkBoth(List<NcclComm> rest, List<Integer> excluded, Deadline deadline, Runnable watch) {
    for (NcclSide side : List.of(collectives, pairs)) {
      Event shrunk =
          side.lane()
              .submit("shrinking", () -> rest.add(side.engine().shrink(excluded, deadline, watch)));
      try {
        shrunk.await(Deadline.after(timeout().plus(NcclSide.SETTLING)));
      } catch (EventFailedException e) {
        throw asCollective(e.getCause());
      } catch (EventTimeoutException e) {
        throw givenUp(e);
      }
    }
  }

  /** Throws why it cannot be used any more, as far as the ranks know on the host. */
  void requireWell() {
    failure()
        .or(() -> collectives.agreement().trouble())
        .ifPresent(
            failure -> {
              throw failure;
            });
  }

  /** The host's communicator of the same ranks. */
  Communicator host() {
    return collectives.agreement().host();
  }

  NcclOptions nccl() {
    return nccl;
  }

  /** That for collectives or that for pairs. */
  NcclSide side(boolean ofCollectives) {
    return ofCollectives ? collectives : pairs;
  }

  void inTurn(String what, Consumer<Deadline> work) {
    runInTurn(what, work);
  }

  Event submitted(String what, Lane lane, HostEvent use, Consumer<Deadline> work) {
    return submitInTurn(what, lane, use, work);
  }

  void run(NcclSide side, String what, Lane.Work work) {
    awaitAll(List.of(submit(side, what, work)));
  }

  /** What fails on one side stops the other at once. */
  private Event submit(NcclSide side, String what, Lane.Work work) {
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
    return host().topology();
  }

  @Override
  protected Algorithm execute(Operation operation, Deadline deadline) {
    return executeGroup(List.of(operation), deadline);
  }

  @Override
  public void runGroup(List<Operation> operations, List<Event> after) {
    DeviceOrder.check(operations, after, nccl.device());
    runGroup(operations, (group, deadline) -> executeGroup(group, after, deadline));
  }

  @Override
  protected Algorithm executeGroup(List<Operation> operations, Deadline deadline) {
    return executeGroup(operations, List.of(), deadline);
  }

  private Algorithm executeGroup(List<Operation> operations, List<Event> after, Deadline deadline) {
    waitNanos.set(0);
    List<Operation> together =
        operations.stream().filter(each -> each.kind().isCollective()).toList();
    List<Operation> between =
        operations.stream().filter(each -> !each.kind().isCollective()).toList();
    AtomicReference<Algorithm> algorithm = new AtomicReference<>(Algorithm.NCCL);
    List<Event> running = new ArrayList<>();
    if (!between.isEmpty()) {
      running.add(submit(pairs, "pairs", () -> pairs.engine().runPairs(between, after, deadline)));
    }
    if (!together.isEmpty()) {
      running.add(
          submit(
              collectives,
              "collectives",
              () -> algorithm.set(collectives.engine().runCollectives(together, deadline))));
    }
    try {
      awaitAll(running);
    } catch (CollectiveException e) {
      // An engine that has not come back may be kept from it by its device.
      running.stream()
          .filter(each -> each.state() == Event.State.RECORDED)
          .forEach(each -> KeptBuffers.keep(operations, each));
      throw e;
    }
    return algorithm.get();
  }

  @Override
  public Captured capture(List<List<Operation>> steps) {
    AtomicReference<Captured> captured = new AtomicReference<>();
    runInTurn(
        "capturing " + steps.size() + " steps",
        deadline -> captured.set(NcclStepGraph.capture(this, steps, deadline)));
    return captured.get();
  }

  @Override
  public int agree(int mine) {
    TypedBuffer verdict =
        TypedBuffer.wrap(ByteBuffer.allocateDirect(Integer.BYTES), DataType.INT32);
    Memory.putInt(verdict.address(), mine);
    runInTurn("agreeing on a replay", deadline -> host().allReduce(verdict, ReduceOp.MAX));
    return Memory.getInt(verdict.address());
  }

  @Override
  public Optional<DeviceCommunicator> split(int color, int key) {
    if (color < NO_COLOR) {
      throw CollectiveException.invalid("color " + color + " is neither NO_COLOR nor 0 or more");
    }
    AtomicReference<Optional<DeviceCommunicator>> part = new AtomicReference<>();
    runInTurn(
        "splitting a communicator",
        deadline -> part.set(new NcclSplit(this, hosts, deadline).run(color, key)));
    return part.get();
  }

  @Override
  public DeviceWindow register(CudaMemory memory) {
    return new KnownMemory(this).register(memory);
  }

  @Override
  public SharedWindow share(CudaMemory memory) {
    return new KnownMemory(this).share(memory);
  }

  /**
   * Returns only when the engines have let go of all buffers, also where it throws: the first
   * failure of both sides, as the later one is often that the other had stopped.
   */
  private void awaitAll(List<Event> running) {
    CollectiveException failure = null;
    for (Event each : running) {
      try {
        each.await(Deadline.after(timeout().multipliedBy(2).plus(NcclSide.SETTLING)));
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
        List.of(rank()),
        "rank "
            + rank()
            + (interrupted ? " was interrupted" : " got no answer from NCCL or the device")
            + " in communicator "
            + id(),
        cause);
  }

  private void stopEngines(CollectiveException cause) {
    stop.compareAndSet(null, cause);
    for (NcclSide side : List.of(collectives, pairs)) {
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
    for (NcclSide side : List.of(collectives, pairs)) {
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
    for (NcclSide side : List.of(collectives, pairs)) {
      side.agreement().close();
      closing.add(
          side.lane().submit("close", () -> side.engine().close(healthy && idle, nccl.linger())));
    }
    closing.forEach(NcclSide::settle);
    collectives.lane().close();
    pairs.lane().close();
  }
}
