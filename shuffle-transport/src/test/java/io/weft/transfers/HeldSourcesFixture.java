package io.weft.transfers;

import static io.weft.transfers.Content.ints;
import static io.weft.transfers.Executors.device;

import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Event;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** Arrays on GPUs whose writing is held, so that only the test decides when it ends. */
abstract class HeldSourcesFixture extends TransferFixture {
  final GpuArrays arrays = new GpuArrays();
  final Deque<Runnable> opened = new ArrayDeque<>();
  GpuHolds holds;

  @BeforeAll
  static void needsDoubles() {
    TestGpus.assumeDoubles();
  }

  @BeforeEach
  void holds() {
    holds = new GpuHolds();
  }

  @Override
  Executors.Communicators communicators() {
    return (folder, executor) ->
        new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("shared")));
  }

  @Override
  void open(TransferOptions options) {
    super.open(options);
    executors.gpus(GpuPath.NCCL);
  }

  @Override
  @AfterEach
  void close() {
    boolean used = executors != null;
    if (holds != null) {
      holds.close();
    }
    super.close();
    executors = null;
    while (!opened.isEmpty()) {
      opened.pop().run();
    }
    if (used) {
      arrays.close();
      TestGpus.assertClean();
    }
  }

  @Override
  TypedBuffer placed(int executor, TypedBuffer array) {
    return arrays.copy(executor, array);
  }

  /** An array of executor 0 and the work that writes it, which is held. */
  record Held(Event before, Event written, TypedBuffer array) {
    SourceBuffer source() {
      return new SourceBuffer(device(0), array, written);
    }
  }

  Held held(long seed) {
    return held(writing(0), seed);
  }

  Held held(CudaLane lane, long seed) {
    CudaLane other = arrays.lane(GpuHolds.GPU);
    holds.hold();
    return written(0, lane, other.submit("the work before", () -> {}), seed);
  }

  CudaLane writing(int executor) {
    CudaDevice gpu = TestGpus.cuda().open(TestGpus.ordinal(executor));
    opened.push(gpu::close);
    CudaLane lane = CudaLane.open(gpu, "writing", DEADLINE, Lane.Priority.NORMAL);
    opened.push(lane::close);
    return lane;
  }

  /** Work that stays held when {@link GpuHolds#holdNext} releases the first. */
  Held heldLonger(Held first, long seed) {
    Event before = arrays.lane(GpuHolds.NEXT).submit("the work between", () -> {}, first.before());
    return written(0, writing(0), before, seed);
  }

  Held written(int executor, CudaLane lane, Event before, long seed) {
    TypedBuffer content = arrays.copy(executor, ints(256, seed));
    TypedBuffer array = arrays.copy(executor, ints(256, seed + 1));
    Event written =
        lane.submit(
            "writing",
            () -> lane.stream().copyOnDevice(array.address(), content.address(), array.bytes()),
            before);
    Content.awaitRecorded(written);
    return new Held(before, written, array);
  }

  Event send(Held held, int to, long key) {
    return send(0, held, to, key);
  }

  Event send(int from, Held held, int to, long key) {
    return executors
        .get(from)
        .send(
            List.of(new SourceBuffer(device(from), held.array(), held.written())),
            List.of(device(to)),
            keys(key))
        .get(0);
  }

  void awaitBehind(int... executorsOfThem) {
    for (int executor : executorsOfThem) {
      Awaitility.await("the group of executor " + executor)
          .atMost(DEADLINE)
          .until(() -> executors.count(executor, TransferCounter.GROUPS_BEHIND_DEVICES) == 1);
    }
  }
}
