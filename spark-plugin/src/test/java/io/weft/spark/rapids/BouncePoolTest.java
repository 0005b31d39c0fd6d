package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.rapids.cudf.TestDeviceMemory;
import com.nvidia.spark.rapids.shuffle.BounceBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The loans of bounce buffers. The addresses are fake and never accessed. */
class BouncePoolTest {
  private static final long ADDRESS = 1L << 20;

  private final AtomicBoolean memoryFreed = new AtomicBoolean();
  private final AtomicInteger freed = new AtomicInteger();
  private final List<BounceBuffer> taken = new ArrayList<>();
  private final List<TestDeviceMemory> made = new ArrayList<>();
  private final BouncePool pool = pool(Duration.ofMillis(50));

  private BouncePool pool(Duration timeout) {
    return new BouncePool("test", this::memory, 1000, 3, timeout, freed::incrementAndGet);
  }

  private TestDeviceMemory memory(long bytes) {
    made.add(new TestDeviceMemory(ADDRESS, bytes, () -> memoryFreed.set(true)));
    return made.get(made.size() - 1);
  }

  @AfterEach
  void closeAll() {
    taken.stream().filter(each -> !each.isClosed()).forEach(BounceBuffer::close);
    pool.close();
    made.forEach(TestDeviceMemory::forget);
  }

  private List<BounceBuffer> take(long bytes, int most) {
    List<BounceBuffer> buffers = pool.tryTake(bytes, most);
    taken.addAll(buffers);
    return buffers;
  }

  @Test
  void buffersAreLentAsLongAsThereAreEnough() {
    List<BounceBuffer> two = take(1001, 5);
    assertThat(two).hasSize(2);
    assertThat(two.get(0).buffer().getLength()).isEqualTo(1000);
    assertThat(take(1500, 5)).isEmpty();
    assertThat(take(1500, 1)).hasSize(1);
    assertThat(take(1, 1)).isEmpty();
    two.get(1).close();
    assertThat(freed).hasValue(1);
    assertThat(take(1, 1).get(0).buffer().getAddress()).isEqualTo(ADDRESS + 1000);
    // A request for more than the pool gets the whole pool.
    two.get(0).close();
    assertThat(take(100_000, 100)).isEmpty();
  }

  @Test
  void aBufferInUseByAMoveIsNotLentAgain() {
    BounceBuffer buffer = take(1, 1).get(0);
    Runnable passed = pool.hold(buffer.buffer().getAddress() + 10);
    buffer.close();
    assertThat(freed).hasValue(0);
    assertThat(take(3000, 3)).isEmpty();
    passed.run();
    assertThat(freed).hasValue(1);
    assertThat(take(3000, 3)).hasSize(3);
  }

  @Test
  void memoryOfOthersIsNotHeld() {
    pool.hold(ADDRESS - 1).run();
    pool.hold(ADDRESS + 3000).run();
    assertThat(take(3000, 3)).hasSize(3);
  }

  @Test
  void theMemoryIsFreedWhenAllThatIsLentIsClosed() {
    BounceBuffer lent = take(1, 1).get(0);
    pool.close();
    assertThat(memoryFreed).isFalse();
    lent.close();
    assertThat(memoryFreed).isTrue();
  }

  @Test
  void memoryInUseByAMoveStays() {
    Runnable unused = pool.hold(ADDRESS);
    pool.close();
    assertThat(memoryFreed).isFalse();
  }

  @Test
  void aPoolOfNothingIsRefused() {
    assertThatThrownBy(() -> new BouncePool("test", bytes -> null, 0, 1, Duration.ZERO, () -> {}))
        .hasMessageContaining("spark.rapids.shuffle.ucx.bounceBuffers");
  }
}
