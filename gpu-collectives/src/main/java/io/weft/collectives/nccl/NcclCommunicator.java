package io.weft.collectives.nccl;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.Operation;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Topology;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.NcclEngine.RetainedBuffers;
import io.weft.collectives.nccl.NcclEnginePair.NcclEngineLane;
import io.weft.collectives.symmetric.GraphCapturer;
import io.weft.collectives.symmetric.StepRecording;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/** One rank of the NCCL implementation. Two engines move the elements. */
final class NcclCommunicator extends OrderedCommunicator
    implements DeviceCommunicator, GraphCapturer {
  private final NcclOptions nccl;
  private final AtomicLong waitNanos = new AtomicLong();
  private final NcclEnginePair sides;
  private final NcclEngineLane collectives;
  private final NcclEngineLane pairs;
  private final DeviceBuffers buffers;
  private boolean closed;

  NcclCommunicator(
      Bootstrap bootstrap,
      CommunicatorOptions common,
      NcclOptions nccl,
      HostCommunicatorPair pair) {
    super(Bootstrapped.of(bootstrap), common);
    this.nccl = nccl;
    this.sides = NcclEnginePair.open(self(), nccl, pair, waitNanos);
    this.collectives = sides.collectives();
    this.pairs = sides.pairs();
    this.buffers = new DeviceBuffers(this);
  }

  private NcclEnginePair.Self self() {
    return new NcclEnginePair.Self(id(), rank(), timeout(), logPrefix());
  }

  /**
   * Connects to the other ranks in NCCL: first for collectives, unless it is for pairs only, then
   * for pairs.
   */
  void connect(byte[] collectivesId, byte[] pairsId, Deadline deadline) {
    if (!nccl.pairsOnly()) {
      sides.run(
          collectives, "connecting", () -> collectives.engine().connect(collectivesId, deadline));
    }
    sides.run(pairs, "connecting", () -> pairs.engine().connect(pairsId, deadline));
  }

  @Override
  public Communicator beside() {
    if (!nccl.pairsOnly()) {
      throw new UnsupportedOperationException("the collectives of " + this + " use it");
    }
    return host();
  }

  @Override
  protected void checkOffered(Operation operation) {
    if (nccl.pairsOnly() && operation.kind().isCollective()) {
      requireCollectives(operation.signature().toString());
    }
  }

  private void requireCollectives(String what) {
    if (nccl.pairsOnly()) {
      throw CollectiveException.invalid(
          what + " on a communicator that is for sends and receives only");
    }
  }

  /** The host's communicator with the same ranks. */
  Communicator host() {
    return collectives.agreement().host();
  }

  NcclOptions nccl() {
    return nccl;
  }

  /** The side for collectives, or the side for pairs. */
  NcclEngineLane side(boolean ofCollectives) {
    return ofCollectives ? collectives : pairs;
  }

  void inTurn(String what, Consumer<Deadline> work) {
    runInTurn(what, work);
  }

  Event submitted(String what, Lane lane, HostEvent use, Consumer<Deadline> work) {
    return submitInTurn(what, lane, use, work);
  }

  void run(NcclEngineLane side, String what, Lane.Work work) {
    sides.run(side, what, work);
  }

  /**
   * Copies bytes in this rank's turn.
   *
   * @param use ends when nothing accesses the buffers any more; after a failure possibly never
   */
  void copy(TypedBuffer to, TypedBuffer from, HostEvent use) {
    AtomicBoolean submitted = new AtomicBoolean();
    try {
      inTurn(
          use.what(),
          deadline -> {
            AtomicBoolean started = new AtomicBoolean();
            Event copying =
                sides.submit(
                    collectives,
                    "copying",
                    () -> {
                      started.set(true);
                      collectives.engine().copy(to, from, use, deadline);
                    });
            submitted.set(true);
            copying.whenDone(
                cause -> {
                  if (!started.get()) {
                    use.complete();
                  }
                });
            sides.awaitAll(List.of(copying));
          });
    } finally {
      if (!submitted.get()) {
        use.complete();
      }
    }
  }

  @Override
  public Recording record(MovedBuffers moved, Consumer<Communicator> body) {
    return StepRecording.record(this, moved, body);
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
    DeviceOrderCheck.check(operations, after, nccl.device());
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
      running.add(
          sides.submit(pairs, "pairs", () -> pairs.engine().runPairs(between, after, deadline)));
    }
    if (!together.isEmpty()) {
      running.add(
          sides.submit(
              collectives,
              "collectives",
              () -> algorithm.set(collectives.engine().runCollectives(together, deadline))));
    }
    try {
      sides.awaitAll(running);
    } catch (CollectiveException e) {
      // The device may block an engine that has not returned.
      running.stream()
          .filter(each -> each.state() == Event.State.RECORDED)
          .forEach(each -> RetainedBuffers.keep(operations, each));
      throw e;
    }
    return algorithm.get();
  }

  @Override
  public Captured capture(List<List<Operation>> steps) {
    requireCollectives("recording");
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
  public boolean hasBuffers() {
    return nccl.arena() != null;
  }

  @Override
  public GpuBuffer onDevice(DataType type, long count) {
    requireCollectives("a buffer of all ranks");
    if (!hasBuffers()) {
      throw CollectiveException.invalid("the options of " + this + " have no memory for buffers");
    }
    return buffers.allocate(type, count);
  }

  @Override
  protected long lastWaitNanos() {
    return waitNanos.get();
  }

  @Override
  protected void announce(CollectiveException cause) {
    sides.abort(cause);
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
    boolean ended = awaitIdle(Deadline.after(timeout()));
    boolean idle = sides.close(healthy && ended, nccl.linger());
    buffers.close(healthy && ended, idle);
  }

  /** Checks which operations can be enqueued after device work that has not ended yet. */
  static final class DeviceOrderCheck {
    private DeviceOrderCheck() {}

    /**
     * Rejects operations and events that the host would have to wait for.
     *
     * @throws CollectiveException of kind INVALID
     */
    static void check(List<Operation> operations, List<Event> after, CudaDevice device) {
      for (Event each : after) {
        if (!each.isOnDevice() || each.state() == Event.State.PENDING) {
          throw CollectiveException.invalid(
              each + " is not recorded work of a device, so no device can wait for it");
        }
      }
      for (Operation operation : operations) {
        if (operation.kind().isCollective()) {
          throw CollectiveException.invalid(
              operation.signature()
                  + " is a collective; only sends and receives can follow device work");
        }
        for (TypedBuffer buffer : operation.buffers()) {
          if (isOnHost(buffer, device)) {
            throw CollectiveException.invalid(
                operation.signature()
                    + ": "
                    + buffer
                    + " is memory of the host, which would be read"
                    + " before the work of devices has ended");
          }
        }
      }
    }

    /** Freed memory is accepted here. It is rejected by name later, as in all groups. */
    private static boolean isOnHost(TypedBuffer buffer, CudaDevice device) {
      try {
        return buffer.count() > 0 && !device.isDeviceMemory(buffer.address());
      } catch (IllegalStateException e) {
        return false;
      }
    }
  }
}
