package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.memory.Memory;
import io.weft.testgpus.TestMachine;
import io.weft.testgpus.UsesGpu;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@UsesGpu
class BounceBuffersTest {
  private static final int PIECE = 1000;
  private static final int MOST = 10 * PIECE;

  private CudaDevice device;
  private CudaMemoryPool pinned;
  private CudaMemoryPool pool;
  private CudaMemory there;
  private CudaStream stream;
  private BounceBuffers bounce;

  @BeforeEach
  void open() {
    device = TestMachine.open(5);
    pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 1 << 20);
    pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
    there = pool.take(MOST);
    stream = CudaStream.open(device, "bounce", Priority.NORMAL);
    bounce = new BounceBuffers(stream, pinned, PIECE);
    DoubleLibraries.cudaControls().cudaDoublePageableCopies();
  }

  @AfterEach
  void nothingIsLeaked() {
    assertThat(DoubleLibraries.cudaControls().cudaDoublePageableCopies()).isZero();
    stream.close();
    bounce.close();
    there.close();
    pool.close();
    pinned.close();
    device.close();
    DoubleLibraries.assertClean();
  }

  private static long address(ByteBuffer buffer) {
    return Memory.addressOf(buffer);
  }

  private static ByteBuffer random(int bytes) {
    byte[] values = new byte[bytes];
    new Random(bytes).nextBytes(values);
    return ByteBuffer.allocateDirect(bytes).put(values).flip();
  }

  private void await(CudaMark mark) {
    Deadline deadline = Deadline.after(Duration.ofSeconds(60));
    while (!mark.isReached()) {
      assertThat(deadline.expired()).isFalse();
      Thread.onSpinWait();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 7 * PIECE + 13, MOST})
  void bytesAreCopiedToTheDeviceAndBack(int bytes) {
    ByteBuffer from = random(bytes);
    ByteBuffer to = ByteBuffer.allocateDirect(bytes);
    bounce.copyToDevice(there.address(), address(from), bytes, this::await);
    bounce.copyToHost(address(to), there.address(), bytes, this::await);
    assertThat(to).isEqualTo(from);
    assertThat(pinned.takenBytes()).isLessThanOrEqualTo(2 * 1024);
  }

  /** The device works after a lane that is blocked; the host memory is free at once. */
  @Test
  @UsesDoubles
  void hostMemoryMayChangeWhileTheDeviceStillCopies() {
    ByteBuffer from = random(2 * PIECE);
    ByteBuffer to = ByteBuffer.allocateDirect(2 * PIECE);
    DoubleLibraries.cudaControls().cudaDoublePause(1);
    try {
      bounce.copyToDevice(there.address(), address(from), 2 * PIECE, this::await);
      Memory.setMemory(address(from), 2 * PIECE, (byte) 0);
    } finally {
      DoubleLibraries.cudaControls().cudaDoublePause(0);
    }
    bounce.copyToHost(address(to), there.address(), 2 * PIECE, this::await);
    assertThat(to).isEqualTo(random(2 * PIECE));
    Reference.reachabilityFence(from);
  }

  @Test
  @UsesDoubles
  void waitThatIsGivenUpLeavesTheHostMemoryAlone() {
    ByteBuffer to = random(3 * PIECE);
    DoubleLibraries.cudaControls().cudaDoublePause(1);
    try {
      assertThatThrownBy(
              () ->
                  bounce.copyToHost(
                      address(to),
                      there.address(),
                      3 * PIECE,
                      mark -> {
                        throw new IllegalStateException("given up");
                      }))
          .hasMessage("given up");
    } finally {
      DoubleLibraries.cudaControls().cudaDoublePause(0);
    }
    assertThat(stream.awaitIdle(Deadline.after(Duration.ofSeconds(60)))).isTrue();
    bounce.reset();
    bytesAreCopiedToTheDeviceAndBack(PIECE);
    assertThat(to).isEqualTo(random(3 * PIECE));
  }

  @Test
  void pinnedMemoryIsCopiedDirectly() {
    try (CudaMemory host = pinned.take(MOST)) {
      Memory.setMemory(host.address(), MOST, (byte) 3);
      bounce.copyToDevice(there.address(), host.address(), MOST, this::await);
      assertThat(stream.awaitIdle(Deadline.after(Duration.ofSeconds(60)))).isTrue();
      Memory.setMemory(host.address(), MOST, (byte) 0);
      bounce.copyToHost(host.address(), there.address(), MOST, this::await);
      assertThat(Memory.getByte(host.address() + MOST - 1)).isEqualTo((byte) 3);
      assertThat(pinned.takenBytes()).isLessThan(MOST + 512);
    }
  }
}
