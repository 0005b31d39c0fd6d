package io.weft.transfers.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.collectives.nccl.DeviceBuffer;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaMemorySource;
import io.weft.memory.Memory;
import io.weft.transfers.TestGpus;
import io.weft.transfers.gpu.SharedRoom.ReleasedRooms;
import io.weft.transfers.gpu.TransferGpu.HostPathCommunicator;
import io.weft.transfers.gpu.TransferGpu.HostWire;
import io.weft.transfers.gpu.TransferGpuState.GpuBuffers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Two ends of a wire on one GPU: mapped and staged paths, and the life of rooms. */
class HostWireTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final long BYTES = 3 * SharedRoom.WAVE_BYTES - 12_345;
  private static final int LAUNCH_FAILED = 719;
  private static final long PLENTY = 256 << 20;

  private final List<String> obstacles = new ArrayList<>();
  private final List<TransferGpuState> ends = new ArrayList<>();
  private final List<HostWire> wires = new ArrayList<>();
  private final List<Communicator> communicators = new ArrayList<>();
  private CudaDevice device;
  private CudaMemoryPool pool;

  @BeforeAll
  static void needsDoubles() {
    TestGpus.assumeDoubles();
  }

  @BeforeEach
  void open() {
    device = TestGpus.cuda().open(0);
    pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, PLENTY);
  }

  @AfterEach
  void nothingIsLeftBehind() {
    TestGpus.controls().cudaDoublePause(0);
    TestGpus.controls().cudaDoubleLose(0, 0);
    wires.forEach(HostWire::close);
    communicators.forEach(Communicator::close);
    ends.forEach(TransferGpuState::close);
    pool.close();
    device.close();
    TestGpus.assertClean();
  }

  /** Opens two ends with the given memory for rooms. */
  private void connect(long first, long second, CudaMemorySource source) throws Exception {
    List<Bootstrap> bootstraps = ThreadBootstrap.open(2);
    List<CompletableFuture<Communicator>> made = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      CudaDevice own = TestGpus.cuda().open(0);
      CudaMemoryPool memory = CudaMemoryPool.open(own, CudaMemoryPool.Kind.DEVICE, PLENTY);
      ends.add(
          new TransferGpuState(
              own,
              memory,
              CudaMemoryPool.open(own, CudaMemoryPool.Kind.PINNED, PLENTY),
              CudaMemoryPool.open(own, source, rank == 0 ? first : second),
              new GpuBuffers(memory),
              new ReleasedRooms()));
      Bootstrap bootstrap = bootstraps.get(rank);
      made.add(
          CompletableFuture.supplyAsync(
              () ->
                  LocalCommunicator.create(
                      bootstrap, CommunicatorOptions.DEFAULT.withTimeout(TIMEOUT))));
    }
    for (int rank = 0; rank < 2; rank++) {
      communicators.add(made.get(rank).get(60, TimeUnit.SECONDS));
      wires.add(
          new HostWire(
              new HostPathCommunicator(communicators.get(rank), true, this::addObstacle),
              ends.get(rank)));
    }
  }

  private synchronized void addObstacle(String obstacle) {
    obstacles.add(obstacle);
  }

  private static TypedBuffer bytes(CudaMemory memory) {
    return TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT8, memory.bytes());
  }

  private CompletableFuture<Void> move(int end, List<TypedBuffer> to, List<TypedBuffer> from) {
    return CompletableFuture.runAsync(
        () -> wires.get(end).move(to, from), task -> new Thread(task, "end-" + end).start());
  }

  /** Moves arrays of different lengths in both directions at once. */
  private void exchange() {
    try (CudaMemory there = pool.take(BYTES);
        CudaMemory arrived = pool.take(BYTES);
        CudaMemory back = pool.take(1000);
        CudaMemory returned = pool.take(1000)) {
      for (long at = 0; at < BYTES; at++) {
        Memory.putByte(there.address() + at, (byte) (at * 31 >> 3));
      }
      Memory.setMemory(back.address(), 1000, (byte) 9);
      CompletableFuture<Void> other = move(1, List.of(bytes(back)), List.of(bytes(arrived)));
      move(0, List.of(bytes(there)), List.of(bytes(returned))).join();
      other.join();
      long wrong = 0;
      for (long at = 0; at < BYTES; at++) {
        wrong += Memory.getByte(arrived.address() + at) == (byte) (at * 31 >> 3) ? 0 : 1;
      }
      assertThat(wrong).isZero();
      assertThat(Memory.getByte(returned.address() + 999)).isEqualTo((byte) 9);
    }
  }

  @Test
  void arraysInPoolsAreCopiedOnce() throws Exception {
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.DEVICE);
    exchange();
    int unused = TestGpus.controls().cudaDoubleHostCopies();
    long before = bytesCopied();
    exchange();
    assertThat(bytesCopied()).as("after " + before).isEqualTo(BYTES + 1000);
    assertThat(TestGpus.controls().cudaDoubleHostCopies()).isZero();
    assertThat(obstacles).containsExactly("", "");
    assertThat(pool.lentBytes()).isPositive();
  }

  private static long bytesCopied() {
    return TestGpus.controls().cudaDoubleDeviceBytesCopied();
  }

  /** A pool does not lend all of its memory. */
  @Test
  void otherMemoryGoesInWavesThroughMemoryThatBothMap() throws Exception {
    long largeBytes = 2 * SharedRoom.BYTES + SharedRoom.WAVE_BYTES;
    CudaMemoryPool scarce =
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, largeBytes * 5 / 4);
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.DEVICE);
    CudaMemory large = scarce.take(largeBytes);
    CudaMemory small = scarce.take(1000);
    CudaMemory to = ends.get(1).memory().take(large.bytes());
    CudaMemory smallTo = ends.get(1).memory().take(1000);
    for (long at = 0; at < large.bytes(); at++) {
      Memory.putByte(large.address() + at, (byte) (at * 31 >> 3));
    }
    Memory.setMemory(small.address(), 1000, (byte) 9);
    exchange();
    long before = bytesCopied();
    CompletableFuture<Void> other = move(1, List.of(), List.of(bytes(to), bytes(smallTo)));
    move(0, List.of(bytes(large), bytes(small)), List.of()).join();
    other.join();
    assertThat(bytesCopied()).as("after " + before).isEqualTo(2 * large.bytes() + 1000);
    long wrong = 0;
    for (long at = 0; at < large.bytes(); at++) {
      wrong += Memory.getByte(to.address() + at) == (byte) (at * 31 >> 3) ? 0 : 1;
    }
    assertThat(wrong).isZero();
    assertThat(Memory.getByte(smallTo.address() + 999)).isEqualTo((byte) 9);
    List.of(large, small, to, smallTo).forEach(CudaMemory::close);
    scarce.close();
  }

  /** A pool that needs the memory for another size gets it with the pair's next move. */
  @Test
  void lentMemoryReturnsWhenItsPoolNeedsIt() throws Exception {
    pool.close();
    pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 16 << 20);
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.DEVICE);
    CudaMemory to = ends.get(1).memory().take(8 << 20);
    try (CudaMemory from = pool.take(8 << 20)) {
      moveTo(from, to);
    }
    assertThat(pool.lentBytes()).isEqualTo(8 << 20);
    assertThatThrownBy(() -> pool.take(12 << 20))
        .hasMessageContaining("exceed the budget")
        .hasMessageEndingWith("8.0 MiB of these lent to other processes");
    CudaMemoryPool elsewhere =
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, SharedRoom.BYTES);
    try (CudaMemory from = elsewhere.take(8 << 20)) {
      moveTo(from, to);
    }
    assertThat(pool.lentBytes()).isZero();
    pool.take(12 << 20).close();
    to.close();
    elsewhere.close();
  }

  private void moveTo(CudaMemory from, CudaMemory to) {
    CompletableFuture<Void> other = move(1, List.of(), List.of(bytes(to)));
    move(0, List.of(bytes(from)), List.of()).join();
    other.join();
  }

  /** The other end may still read the sender's memory after the sender has failed. */
  @Test
  void failedSendsStayUntilTheOtherEndHasLeft() throws Exception {
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.DEVICE);
    exchange();
    CudaMemory from = pool.take(BYTES);
    CudaMemory to = ends.get(1).memory().take(BYTES);
    TestGpus.controls().cudaDoublePause(1);
    CompletableFuture<Void> receiving = move(1, List.of(), List.of(bytes(to)));
    CompletableFuture<Void> sending = move(0, List.of(bytes(from)), List.of());
    wires.forEach(wire -> wire.abort("for the test"));
    assertThatThrownBy(() -> sending.get(15, TimeUnit.SECONDS))
        .hasMessageContaining("for the test");
    assertThatThrownBy(() -> receiving.get(15, TimeUnit.SECONDS))
        .hasMessageContaining("for the test");
    from.close();
    to.close();
    TestGpus.controls().cudaDoublePause(0);
    wires.remove(0).close();
    assertThat(ends.get(0).released().poll()).isOne();
    assertThat(pool.takenBytes()).isEqualTo((BYTES + 511) & -512);
    wires.remove(0).close();
    assertThat(ends.get(0).released().poll()).isZero();
    assertThat(pool.takenBytes()).isZero();
    assertThat(pool.lentBytes()).isZero();
  }

  @Test
  void whereOneEndHasNoRoomBothStage() throws Exception {
    connect(SharedRoom.BYTES, 1 << 20, CudaMemoryPool.Kind.DEVICE);
    exchange();
    exchange();
    assertThat(obstacles)
        .hasSize(2)
        .allSatisfy(each -> assertThat(each).contains("exceed the budget"));
    assertThat(ends.get(0).shared().takenBytes()).isZero();
    assertThat(TestGpus.controls().cudaDoubleHostCopies()).isPositive();
  }

  /** The failure occurs while the ends map. */
  @Test
  void whereMemoryCannotBeMappedBothStage() throws Exception {
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.PINNED);
    exchange();
    assertThat(obstacles)
        .hasSize(2)
        .allSatisfy(each -> assertThat(each).contains("cannot be exported to other processes"));
    assertThat(ends.get(0).shared().takenBytes()).isZero();
  }

  /** The other end may still read it. */
  @Test
  void aRoomStaysUntilTheOtherEndHasLeftItToo() throws Exception {
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.DEVICE);
    exchange();
    wires.remove(0).close();
    assertThat(ends.get(0).released().poll()).isOne();
    assertThat(ends.get(0).shared().takenBytes()).isEqualTo(SharedRoom.BYTES);
    wires.remove(0).close();
    assertThat(ends.get(0).released().poll()).isZero();
    assertThat(ends.get(0).shared().takenBytes()).isZero();
  }

  /** The memory of sends is neither freed nor reused before the GPU is idle. */
  @Test
  void abortEndsAMoveWhileTheGpuHangs() throws Exception {
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.DEVICE);
    exchange();
    CudaMemory from = pool.take(BYTES);
    CudaMemory to = pool.take(BYTES);
    TestGpus.controls().cudaDoublePause(1);
    CompletableFuture<Void> sending = move(0, List.of(bytes(from)), List.of());
    CompletableFuture<Void> receiving = move(1, List.of(), List.of(bytes(to)));
    wires.forEach(wire -> wire.abort("for the test"));
    assertThatThrownBy(() -> sending.get(15, TimeUnit.SECONDS))
        .hasMessageContaining("for the test");
    assertThatThrownBy(() -> receiving.get(15, TimeUnit.SECONDS))
        .hasMessageContaining("for the test");
    from.close();
    to.close();
    assertThat(pool.takenBytes()).isPositive();
    TestGpus.controls().cudaDoublePause(0);
    wires.forEach(HostWire::close);
    wires.clear();
    await()
        .untilAsserted(
            () -> {
              ends.forEach(end -> assertThat(end.released().poll()).isZero());
              assertThat(pool.takenBytes()).isZero();
            });
  }

  /** The poll is one of many checks of a thread. */
  @Test
  void aPollIsShortWhileTheGpuHangs() throws Exception {
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.DEVICE);
    exchange();
    wires.remove(0).close();
    TestGpus.controls().cudaDoublePause(1);
    long start = System.nanoTime();
    assertThat(ends.get(0).released().poll()).isOne();
    assertThat(ends.get(0).released().poll()).isOne();
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(10));
    TestGpus.controls().cudaDoublePause(0);
    wires.remove(0).close();
    await().untilAsserted(() -> assertThat(ends.get(0).released().poll()).isZero());
  }

  /** A device that failed stays so, and each poll would log it. */
  @Test
  void aRoomWhoseGpuFailedIsGivenUp() throws Exception {
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.DEVICE);
    CompletableFuture<SharedRoom> others = CompletableFuture.supplyAsync(() -> room(1));
    SharedRoom own = room(0);
    SharedRoom other = others.get(60, TimeUnit.SECONDS);
    assertThat(own.depart()).isTrue();
    ReleasedRooms released = new ReleasedRooms();
    TestGpus.controls().cudaDoubleLose(0, LAUNCH_FAILED);
    released.add(own);
    TestGpus.controls().cudaDoubleLose(0, 0);
    assertThat(other.depart()).isTrue();
    assertThat(released.poll()).isOne();
    assertThat(released.awaitAll(Deadline.after(Duration.ofDays(1)))).isOne();
    assertThat(own.tryRelease(Deadline.after(TIMEOUT))).isTrue();
    assertThat(other.tryRelease(Deadline.after(TIMEOUT))).isTrue();
  }

  private SharedRoom room(int end) {
    SharedRoom room = SharedRoom.take(ends.get(end).device(), ends.get(end).shared());
    room.open(communicators.get(end), Deadline.after(TIMEOUT));
    return room;
  }

  /** An abort ends the wait for an end that never comes to the first round. */
  @Test
  void abortEndsTheFirstRound() throws Exception {
    connect(SharedRoom.BYTES, SharedRoom.BYTES, CudaMemoryPool.Kind.DEVICE);
    CompletableFuture<Void> alone = move(0, List.of(), List.of());
    await().until(() -> ends.get(0).shared().takenBytes() > 0);
    wires.get(0).abort("for the test");
    assertThatThrownBy(() -> alone.get(15, TimeUnit.SECONDS)).hasMessageContaining("for the test");
    assertThat(ends.get(0).shared().takenBytes()).isZero();
  }
}
