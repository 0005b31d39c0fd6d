package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.Event.State;
import io.weft.device.Lane.Priority;
import io.weft.device.library.DoubleLibraries;
import io.weft.device.library.UsesDoubles;
import io.weft.memory.Memory;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

@UsesDoubles
class CudaModuleTest {
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final int ROWS = 1000;

  /** Of weft_hash: see hash_arguments. */
  private static final int ARGUMENT_BYTES = 2592;

  private CudaDevice device;
  private CudaMemoryPool memory;
  private CudaMemoryPool pinned;

  @BeforeEach
  void open() {
    device = DoubleLibraries.cuda().open(0);
    memory = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 64 << 20);
    pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 64 << 20);
  }

  @AfterEach
  void nothingIsLeftBehind() {
    DoubleLibraries.cudaControls().cudaDoublePause(0);
    memory.close();
    pinned.close();
    device.close();
    DoubleLibraries.assertClean();
  }

  /** The hash of no columns is the seed. */
  private static KernelArguments noColumns(CudaKernel hash, CudaMemory hashes, int partitions) {
    return hash.arguments()
        .putAddress(hashes, 0, 4 * ROWS)
        .putLong(ROWS)
        .putInt(0)
        .putInt(-45)
        .putInt(1)
        .putInt(partitions)
        .fill();
  }

  @Test
  void kernelRunsInItsPlaceOnALane() {
    try (CudaModule module = CudaModule.load(device, "partition");
        CudaMemory hashes = memory.take(4 * ROWS);
        CudaMemory host = pinned.take(4 * ROWS);
        CudaLane lane = CudaLane.open(device, "kernels", PATIENCE, Priority.NORMAL)) {
      CudaKernel hash = module.kernel("weft_hash", ARGUMENT_BYTES);
      DoubleLibraries.cudaControls().cudaDoublePause(1);
      Event hashed =
          lane.submit(
              "hash", () -> hash.launch(lane.stream(), 2, 256, noColumns(hash, hashes, 100)));
      Event there =
          lane.submit(
              "copy",
              () -> lane.stream().copyToHost(host.address(), hashes.address(), 4 * ROWS),
              hashed);
      there.awaitRecorded(Deadline.after(PATIENCE));
      assertThat(hashed.state()).isEqualTo(State.RECORDED);
      DoubleLibraries.cudaControls().cudaDoublePause(0);
      there.await(Deadline.after(PATIENCE));
      for (int row = 0; row < ROWS; row++) {
        assertThat(Memory.getInt(host.address() + 4L * row)).isEqualTo(55);
      }
    }
  }
}
