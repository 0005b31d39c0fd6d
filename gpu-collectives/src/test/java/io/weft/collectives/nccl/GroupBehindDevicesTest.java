package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.AllReduce;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation;
import io.weft.collectives.Receive;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.nccl.NcclEngine.RetainedBuffers;
import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Sends and receives that are enqueued after unfinished work of a device. */
@UsesDoubles
class GroupBehindDevicesTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int BYTES = 4000;

  /**
   * A device without a rank. Holding its work also holds the work that others enqueued after it.
   */
  private static final int HELD = 5;

  @TempDir Path folder;

  private RankGang gang(Duration timeout) {
    return RankGang.open(
        GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder))),
        2,
        timeout);
  }

  @AfterEach
  void nothingIsLeaked() {
    hold(-1);
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  private static void hold(int device) {
    DoubleLibraries.cudaControls().cudaDoubleHold(device);
  }

  private static CudaLane lane(CudaDevice device, String name) {
    return CudaLane.open(device, name, LONG, Lane.Priority.NORMAL);
  }

  private static TypedBuffer typed(CudaMemory memory) {
    return TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT32, BYTES / 4);
  }

  @Test
  void operationsThatNeedAHostWaitAreRefusedAndBreakNothing() {
    TypedBuffer host = TypedBuffer.wrap(ByteBuffer.allocateDirect(BYTES), DataType.INT32);
    try (RankGang gang = gang(LONG)) {
      gang.run(
          communicator -> {
            DeviceCommunicator device = (DeviceCommunicator) communicator;
            int peer = 1 - communicator.rank();
            CudaDevice gpu = GpuDoubles.device(communicator.rank());
            try (CudaLane lane = lane(gpu, "refused-" + communicator.rank())) {
              Event work = lane.submit("work", () -> {});
              work.await(Deadline.after(LONG));
              refuses(device, new Send(host, peer), work, "memory of the host");
              refuses(
                  device, new AllReduce(host, host, ReduceOp.SUM), work, "only sends and receives");
              refuses(device, new Send(host, peer), HostEvent.completed("host"), "not recorded");
            }
            communicator.barrier();
          });
    }
  }

  private static void refuses(
      DeviceCommunicator communicator, Operation operation, Event after, String reason) {
    assertThatThrownBy(() -> communicator.runGroup(List.of(operation), List.of(after)))
        .isInstanceOfSatisfying(
            CollectiveException.class, e -> assertThat(e.kind()).isEqualTo(Kind.INVALID))
        .hasMessageContaining(reason);
  }

  /** No thread waits on the host: both ranks have enqueued while the earlier work is held. */
  @Test
  void groupIsEnqueuedBeforeTheEarlierWorkHasRun() throws Exception {
    CudaDevice other = DoubleLibraries.cuda().open(HELD);
    try (CudaLane before = lane(other, "before");
        CudaLane lane = lane(GpuDoubles.device(0), "writing");
        CudaMemoryPool pool = pool(0);
        CudaMemory content = pool.take(BYTES);
        CudaMemory memory = pool.take(BYTES);
        RankGang gang = gang(LONG)) {
      Values.fill(typed(content), 3);
      Values.fill(typed(memory), 4);
      hold(HELD);
      Event held = before.submit("before", () -> {});
      Event written =
          lane.submit(
              "writing",
              () -> lane.stream().copyOnDevice(memory.address(), content.address(), BYTES),
              held);
      written.awaitRecorded(Deadline.after(LONG));
      DoubleLibraries.ncclControls().ncclDoubleLaunches();
      CompletableFuture<Event.State> state = new CompletableFuture<>();
      Thread releaser = new Thread(() -> state.complete(releaseWhenEnqueued(written)));
      releaser.start();
      gang.run(
          communicator -> {
            if (communicator.rank() == 0) {
              ((DeviceCommunicator) communicator)
                  .runGroup(List.of(new Send(typed(memory), 1)), List.of(written));
            } else {
              receives(communicator, 3);
            }
          });
      assertThat(state.get(60, TimeUnit.SECONDS)).isEqualTo(Event.State.RECORDED);
      releaser.join();
      written.await(Deadline.after(LONG));
    }
    other.close();
  }

  private static Event.State releaseWhenEnqueued(Event written) {
    AtomicInteger launches = new AtomicInteger();
    await()
        .atMost(LONG)
        .until(() -> launches.addAndGet(DoubleLibraries.ncclControls().ncclDoubleLaunches()) == 2);
    Event.State state = written.state();
    hold(-1);
    return state;
  }

  private static void receives(Communicator communicator, int content) {
    try (CudaMemoryPool pool = pool(communicator.rank());
        CudaMemory memory = pool.take(BYTES)) {
      communicator.receive(typed(memory), 0);
      Values.check("received", typed(memory), i -> Values.of(content, i));
    }
  }

  private static CudaMemoryPool pool(int rank) {
    return CudaMemoryPool.open(GpuDoubles.device(rank), CudaMemoryPool.Kind.DEVICE, 1 << 20);
  }

  /** The memory of a failed group is not reused meanwhile. */
  @Test
  void memoryThatADeviceMayStillUseIsKept() {
    try (CudaMemoryPool pool = pool(0)) {
      CudaMemory memory = pool.take(BYTES);
      TypedBuffer kept = typed(memory);
      TypedBuffer freed = typed(pool.take(BYTES));
      ((DeviceBuffer) freed.owner()).memory().close();
      HostEvent rest = new HostEvent("the rest of a stream");
      RetainedBuffers.keep(List.of(new Send(freed, 1), new Receive(kept, 1)), rest);
      memory.close();
      assertThat(pool.takenBytes()).isPositive();
      rest.complete();
      assertThat(pool.takenBytes()).isZero();
    }
  }
}
