package io.weft.transfers.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.DeviceBuffer;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.memory.Memory;
import io.weft.transfers.Manifest;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.TestGpus;
import io.weft.transfers.TransferWire;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class StagedWireTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final int WAVES = 3;
  private static final long BYTES = WAVES * StagedWire.WAVE_BYTES - 12_345;

  private final Loop loop = new Loop();
  private CudaDevice device;
  private CudaMemoryPool pinned;
  private CudaMemoryPool pool;
  private StagedWire wire;

  @BeforeAll
  static void needsDoubles() {
    TestGpus.assumeDoubles();
  }

  @BeforeEach
  void open() {
    device = TestGpus.cuda().open(0);
    pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 256 << 20);
    pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 256 << 20);
    wire = new StagedWire(loop, device, pinned, TIMEOUT);
    int unused = TestGpus.controls().cudaDoubleHostCopies();
  }

  @AfterEach
  void nothingIsLeftBehind() {
    TestGpus.controls().cudaDoublePause(0);
    wire.close();
    pinned.close();
    pool.close();
    device.close();
    TestGpus.assertClean();
  }

  /** A loopback wire that records the number of GPU copies at each move of a wave. */
  private static final class Loop implements TransferWire {
    private final List<Integer> copies = new ArrayList<>();
    private volatile RuntimeException failure;
    private volatile boolean closesAfterTheLastWave;
    private int sum;

    @Override
    public List<ManifestEntry> exchange(Manifest mine) {
      return List.of();
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      failure()
          .ifPresent(
              each -> {
                throw each;
              });
      sum += TestGpus.controls().cudaDoubleHostCopies();
      copies.add(sum);
      for (int i = 0; i < sends.size(); i++) {
        Memory.copy(sends.get(i).address(), receives.get(i).address(), sends.get(i).bytes());
      }
      if (closesAfterTheLastWave && copies.size() == WAVES) {
        TestGpus.controls().cudaDoublePause(1);
        failure = new IllegalStateException("the peer has closed its communicator");
      }
    }

    @Override
    public Optional<RuntimeException> failure() {
      return Optional.ofNullable(failure);
    }

    @Override
    public void abort(String reason) {
      failure = new IllegalStateException(reason);
    }
  }

  private static TypedBuffer bytes(CudaMemory memory) {
    return TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT8, memory.bytes());
  }

  /** While a wave moves, the next one is copied out and the previous one is copied in. */
  @Test
  void wavesOverlap() {
    try (CudaMemory from = pool.take(BYTES);
        CudaMemory to = pool.take(BYTES)) {
      for (long at = 0; at < BYTES; at++) {
        Memory.putByte(from.address() + at, (byte) (at * 31 >> 3));
      }
      wire.move(List.of(bytes(from)), List.of(bytes(to)));
      for (long at = 0; at < BYTES; at++) {
        assertThat(Memory.getByte(to.address() + at)).isEqualTo((byte) (at * 31 >> 3));
      }
    }
    assertThat(loop.copies).containsExactly(2, 4, 5);
    assertThat(pinned.takenBytes()).isZero();
  }

  /** There is memory for one wave, and only after another user has freed it. */
  @Test
  void littlePinnedMemoryOnlyMakesItSlower() {
    try (CudaMemoryPool little =
            CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 2 * StagedWire.WAVE_BYTES);
        CudaMemory from = pool.take(BYTES);
        CudaMemory to = pool.take(BYTES)) {
      StagedWire slow = new StagedWire(loop, device, little, TIMEOUT);
      CudaMemory other = little.take(StagedWire.WAVE_BYTES);
      Memory.setMemory(from.address(), BYTES, (byte) 7);
      CompletableFuture<Void> moving =
          CompletableFuture.runAsync(() -> slow.move(List.of(bytes(from)), List.of(bytes(to))));
      assertThat(moving).isNotDone();
      assertThat(loop.copies).isEmpty();
      other.close();
      assertThat(moving).succeedsWithin(TIMEOUT);
      slow.close();
      assertThat(Memory.getByte(to.address() + BYTES - 1)).isEqualTo((byte) 7);
      assertThat(loop.copies).containsExactly(1, 3, 5);
      assertThat(little.takenBytes()).isZero();
    }
  }

  /** The GPU still copies the last wave in: all data is here, so the move succeeds. */
  @Test
  void aPeerThatClosesAfterItsLastWaveFailsNothing() {
    loop.closesAfterTheLastWave = true;
    try (CudaMemory from = pool.take(BYTES);
        CudaMemory to = pool.take(BYTES)) {
      Memory.setMemory(from.address(), BYTES, (byte) 7);
      CompletableFuture<Void> moving =
          CompletableFuture.runAsync(() -> wire.move(List.of(bytes(from)), List.of(bytes(to))));
      await().until(() -> loop.failure().isPresent());
      await().until(() -> TestGpus.controls().cudaDoubleHostCopies() > 0);
      assertThat(moving).isNotDone();
      TestGpus.controls().cudaDoublePause(0);
      assertThat(moving).succeedsWithin(TIMEOUT);
      assertThat(Memory.getByte(to.address() + BYTES - 1)).isEqualTo((byte) 7);
    }
    assertThat(pinned.takenBytes()).isZero();
  }

  /** Only this end can know that its GPU hangs. */
  @Test
  void abortEndsTheLastCopyWhileTheGpuHangs() throws Exception {
    loop.closesAfterTheLastWave = true;
    try (CudaMemory from = pool.take(BYTES);
        CudaMemory to = pool.take(BYTES)) {
      CompletableFuture<Void> moving =
          CompletableFuture.runAsync(() -> wire.move(List.of(bytes(from)), List.of(bytes(to))));
      await().until(() -> loop.failure().isPresent());
      wire.abort("for the test");
      assertThatThrownBy(() -> moving.get(15, TimeUnit.SECONDS))
          .hasMessageContaining("for the test");
    }
    TestGpus.controls().cudaDoublePause(0);
    wire.close();
    assertThat(pool.takenBytes()).isZero();
    assertThat(pinned.takenBytes()).isZero();
  }

  /** Freed memory of the sender does not hide the failure of the move. */
  @Test
  void failureOfAMoveIsTheOneThatIsThrown() {
    CudaMemory from = pool.take(BYTES);
    TypedBuffer array = bytes(from);
    from.close();
    loop.abort("for the test");
    assertThatThrownBy(() -> wire.move(List.of(array), List.of()))
        .hasMessageContaining("for the test")
        .satisfies(
            failure ->
                assertThat(failure.getSuppressed()[0])
                    .hasMessageContaining("was returned to its pool"));
    wire.close();
    assertThat(pinned.takenBytes()).isZero();
  }

  /** Its memory is neither freed nor reused before the GPU is idle. */
  @Test
  void abortEndsAMoveWhileTheGpuHangs() throws Exception {
    CudaMemory from = pool.take(BYTES);
    TestGpus.controls().cudaDoublePause(1);
    CompletableFuture<Void> moving =
        CompletableFuture.runAsync(() -> wire.move(List.of(bytes(from)), List.of()));
    await().until(() -> TestGpus.controls().cudaDoubleHostCopies() > 0);
    wire.abort("for the test");
    assertThatThrownBy(() -> moving.get(15, TimeUnit.SECONDS)).hasMessageContaining("for the test");
    from.close();
    assertThat(pool.takenBytes()).isPositive();
    assertThat(pinned.takenBytes()).isPositive();
    TestGpus.controls().cudaDoublePause(0);
    wire.close();
    assertThat(pool.takenBytes()).isZero();
    assertThat(pinned.takenBytes()).isZero();
  }
}
