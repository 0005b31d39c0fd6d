package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.device.DoubleLibraries;
import io.weft.device.HostEvent;
import io.weft.device.UsesDoubles;
import io.weft.testgpus.TestMachine;
import io.weft.testgpus.UsesGpu;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@UsesGpu
class CudaMemoryPoolTest {
  private static final long MIB = 1 << 20;

  private CudaDevice device;

  @BeforeEach
  void open() {
    device = TestMachine.open(1);
  }

  @AfterEach
  void nothingIsLeaked() {
    device.close();
    DoubleLibraries.assertClean();
  }

  @ParameterizedTest
  @EnumSource
  void memoryIsUsedAgain(CudaMemoryPool.Kind kind) {
    try (CudaMemoryPool pool = CudaMemoryPool.open(device, kind, 1 << 20)) {
      long address;
      try (CudaMemory first = pool.take(5000)) {
        address = first.address();
        assertThat(first.bytes()).isEqualTo(5000);
        assertThat(device.isDeviceMemory(address)).isEqualTo(kind == CudaMemoryPool.Kind.DEVICE);
      }
      try (CudaMemory again = pool.take(8192);
          CudaMemory other = pool.take(8192)) {
        assertThat(again.address()).isEqualTo(address);
        assertThat(other.address()).isNotEqualTo(address);
      }
      assertThat(pool.takenBytes()).isZero();
      assertThat(pool.reservedBytes()).isEqualTo(1 << 20);
    }
  }

  private CudaMemoryPool pool(long budgetBytes) {
    return CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, budgetBytes);
  }

  private static List<CudaMemory> take(CudaMemoryPool pool, int count, long bytes) {
    List<CudaMemory> taken = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      taken.add(pool.take(bytes));
    }
    return taken;
  }

  @Test
  @UsesDoubles
  void largeRunIsSplitAndJoinedAgain() {
    try (CudaMemoryPool pool = pool(8 * MIB)) {
      pool.take(8 * MIB).close();
      for (int round = 0; round < 3; round++) {
        List<CudaMemory> small = take(pool, 8, MIB);
        assertThat(small).extracting(CudaMemory::address).doesNotHaveDuplicates();
        assertThat(pool.takenBytes()).isEqualTo(8 * MIB);
        assertThatThrownBy(() -> pool.take(1)).hasMessageContaining("exceed the budget");
        Collections.shuffle(small, new Random(round));
        small.forEach(CudaMemory::close);
        pool.take(8 * MIB).close();
      }
      assertThat(DoubleLibraries.live()).contains("device allocations: 1");
    }
  }

  @Test
  void unusedSegmentsMakeRoomForALargeOne() {
    try (CudaMemoryPool pool = pool(8 * MIB)) {
      List<CudaMemory> small = take(pool, 8, MIB);
      CudaMemory last = small.remove(7);
      small.forEach(CudaMemory::close);
      assertThatThrownBy(() -> pool.take(8 * MIB))
          .hasMessageContaining("of which 1.0 MiB are taken and 8.0 MiB allocated");
      last.close();
      try (CudaMemory large = pool.take(8 * MIB)) {
        assertThat(large.bytes()).isEqualTo(8 * MIB);
        assertThat(pool.reservedBytes()).isEqualTo(8 * MIB);
      }
    }
  }

  /** Frees segments only when it is told, as a driver that waits for running work. */
  private static final class LateSource implements CudaMemorySource {
    private final CountDownLatch freeing = new CountDownLatch(1);
    private final CountDownLatch told = new CountDownLatch(1);
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicLong most = new AtomicLong();

    @Override
    public String what() {
      return "late memory";
    }

    @Override
    public long granularity() {
      return MIB;
    }

    @Override
    public long allocate(CudaDevice device, long length) {
      long address = CudaMemoryPool.Kind.DEVICE.allocate(device, length);
      most.accumulateAndGet(bytes.addAndGet(length), Math::max);
      return address;
    }

    @Override
    public void free(CudaDevice device, long address, long length) {
      freeing.countDown();
      await(told);
      CudaMemoryPool.Kind.DEVICE.free(device, address, length);
      bytes.addAndGet(-length);
    }

    private static void await(CountDownLatch latch) {
      try {
        assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }

    /** Another thread starts to free the pool's segments. */
    CompletableFuture<Void> trim(CudaMemoryPool pool) {
      CompletableFuture<Void> trimmed =
          CompletableFuture.runAsync(pool::trim, task -> new Thread(task, "trim").start());
      await(freeing);
      return trimmed;
    }
  }

  @Test
  void memoryThatIsFreedLateNeverExceedsTheBudget() {
    LateSource source = new LateSource();
    CudaMemoryPool pool = CudaMemoryPool.open(device, source, 8 * MIB);
    pool.take(6 * MIB).close();
    CompletableFuture<Void> trimmed = source.trim(pool);
    CompletableFuture<CudaMemory> taken =
        CompletableFuture.supplyAsync(
            () -> pool.take(8 * MIB), task -> new Thread(task, "large").start());
    await("both segments count").until(() -> pool.reservedBytes() == 14 * MIB);
    source.told.countDown();
    trimmed.join();
    taken.join().close();
    assertThat(source.most.get()).isEqualTo(8 * MIB);
    pool.close();
    assertThat(source.bytes.get()).isZero();
  }

  @Test
  void memoryThatIsNotFreedInTimeIsALackOfRoom() {
    LateSource source = new LateSource();
    CudaMemoryPool pool = CudaMemoryPool.open(device, source, 8 * MIB);
    pool.take(6 * MIB).close();
    CompletableFuture<Void> trimmed = source.trim(pool);
    assertThatThrownBy(() -> pool.take(8 * MIB))
        .isInstanceOf(NoRoomException.class)
        .hasMessageContaining("6.0 MiB of late memory")
        .hasMessageContaining("did not free them within");
    try (CudaMemory small = pool.take(2 * MIB)) {
      assertThat(small.bytes()).as("the rest of the budget").isEqualTo(2 * MIB);
    }
    assertThat(source.most.get()).isEqualTo(8 * MIB);
    source.told.countDown();
    trimmed.join();
    pool.close();
  }

  /** New segments are 2 MiB if there is room, but 1 MiB is enough. */
  @Test
  void aNewSegmentDoesNotGrowIntoMemoryThatIsNotFreeYet() {
    LateSource source = new LateSource();
    CudaMemoryPool pool = CudaMemoryPool.open(device, source, 8 * MIB);
    pool.take(7 * MIB).close();
    CompletableFuture<Void> trimmed = source.trim(pool);
    try (CudaMemory small = pool.take(MIB)) {
      assertThat(small.bytes()).isEqualTo(MIB);
      assertThat(pool.reservedBytes()).isEqualTo(8 * MIB);
    }
    assertThat(source.most.get()).isEqualTo(8 * MIB);
    source.told.countDown();
    trimmed.join();
    pool.close();
    assertThat(pool.reservedBytes()).isZero();
  }

  /** With random sizes and lifetimes, no two pieces overlap and all memory returns. */
  @Test
  void piecesNeverOverlap() {
    Random random = new Random(5);
    try (CudaMemoryPool pool = pool(64 * MIB)) {
      TreeMap<Long, CudaMemory> taken = new TreeMap<>();
      for (int step = 0; step < 5_000; step++) {
        if (random.nextInt(5) < 3 && pool.takenBytes() < 32 * MIB) {
          CudaMemory memory = pool.take(1 + random.nextInt(1 << random.nextInt(21)));
          Map.Entry<Long, CudaMemory> before = taken.lowerEntry(memory.address());
          Map.Entry<Long, CudaMemory> behind = taken.higherEntry(memory.address());
          assertThat(
                  before == null || before.getKey() + before.getValue().bytes() <= memory.address())
              .isTrue();
          assertThat(behind == null || memory.address() + memory.bytes() <= behind.getKey())
              .isTrue();
          assertThat(taken.put(memory.address(), memory)).isNull();
        } else if (!taken.isEmpty()) {
          taken.pollFirstEntry().getValue().close();
        }
      }
      taken.values().forEach(CudaMemory::close);
      assertThat(pool.takenBytes()).isZero();
    }
  }

  @Test
  @UsesDoubles
  void memoryOutlivesItsPool() {
    CudaMemoryPool pool = pool(MIB);
    CudaMemory memory = pool.take(4096);
    pool.close();
    assertThat(DoubleLibraries.live()).contains("device allocations: 1");
    assertThatThrownBy(() -> pool.take(1)).hasMessageContaining("was closed");
    memory.close();
    assertThat(DoubleLibraries.live()).doesNotContain("device allocations");
  }

  @Test
  void useKeepsMemoryBeyondItsClose() {
    try (CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20)) {
      HostEvent use = new HostEvent("use");
      CudaMemory memory = pool.take(4096);
      long address = memory.address();
      memory.usedUntil(use);
      memory.close();
      assertThatThrownBy(memory::address).hasMessageContaining("closed");
      try (CudaMemory other = pool.take(4096)) {
        assertThat(other.address()).isNotEqualTo(address);
      }
      use.complete();
      assertThatThrownBy(() -> memory.usedUntil(use)).hasMessageContaining("returned to its pool");
      try (CudaMemory one = pool.take(4096);
          CudaMemory two = pool.take(4096)) {
        assertThat(address).isIn(one.address(), two.address());
      }
    }
  }

  @Test
  void budgetIsNotExceeded() {
    try (CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 10_000);
        CudaMemory memory = pool.take(8192)) {
      assertThat(memory.bytes()).isEqualTo(8192);
      assertThatThrownBy(() -> pool.take(2000))
          .hasMessageContaining("device memory of " + device.device())
          .hasMessageContaining("exceed the budget");
    }
  }

  /** All of its memory and one byte, because other processes may free some meanwhile. */
  @Test
  void fullDeviceIsTheDriversOwnError() {
    long memory = TestMachine.cuda().gpus().get(device.device().ordinal()).memoryBytes();
    try (CudaMemoryPool pool =
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, Long.MAX_VALUE)) {
      assertThatThrownBy(() -> pool.take(memory + 1))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY");
    }
  }
}
