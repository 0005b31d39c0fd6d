package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Event;
import io.weft.device.Event.State;
import io.weft.device.HostEvent;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.memory.Memory;
import io.weft.testgpus.UsesGpu;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@UsesGpu
class CudaModuleTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final int ROWS = 1000;

  /** The size of hash_arguments, the struct of weft_hash. */
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
  void nothingIsLeaked() {
    DoubleLibraries.cudaControls().cudaDoublePause(0);
    memory.close();
    pinned.close();
    device.close();
    DoubleLibraries.assertClean();
  }

  /** The hash of zero columns is the seed. */
  private static KernelArguments noColumns(CudaKernel hash, CudaMemory hashes, int partitions) {
    return hash.arguments()
        .putLong(hashes.address())
        .putLong(ROWS)
        .putInt(0)
        .putInt(-45)
        .putInt(1)
        .putInt(partitions)
        .fill();
  }

  @Test
  @UsesDoubles
  void kernelRunsInItsPlaceOnALane() {
    try (CudaModule module = CudaModule.load(device, "partition");
        CudaMemory hashes = memory.take(4 * ROWS);
        CudaMemory host = pinned.take(4 * ROWS);
        CudaLane lane = CudaLane.open(device, "kernels", TIMEOUT, Priority.NORMAL)) {
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
      there.awaitRecorded(Deadline.after(TIMEOUT));
      assertThat(hashed.state()).isEqualTo(State.RECORDED);
      DoubleLibraries.cudaControls().cudaDoublePause(0);
      there.await(Deadline.after(TIMEOUT));
      for (int row = 0; row < ROWS; row++) {
        assertThat(Memory.getInt(host.address() + 4L * row)).isEqualTo(55);
      }
    }
  }

  /** An old driver reports the PTX version and the remedy, and so does the message. */
  @ParameterizedTest
  @CsvSource({
    ".version 7.0, .version 99.0, CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)",
    // A driver does not even take this for PTX.
    ".version 7.0, .nothing, CUDA_ERROR_INVALID_"
  })
  void refusedPtxIsAnErrorWithTheRemedy(String from, String to, String name) {
    String ptx = CudaModule.ptx("partition");
    assertThat(ptx).contains(from);
    assertThatThrownBy(() -> CudaModule.load(device, "partition", ptx.replace(from, to)))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("loading the kernels partition on cuda:0")
        .hasMessageContaining("for sm_75 and newer GPUs")
        .hasMessageContaining("an older driver has to be updated")
        .hasMessageContaining("the driver says: ")
        .hasMessageContaining(name);
  }

  @Test
  void unknownNamesAreRefused() {
    assertThatThrownBy(() -> CudaModule.load(device, "nothing"))
        .hasMessageContaining("no kernels are called nothing");
    try (CudaModule module = CudaModule.load(device, "partition")) {
      assertThatThrownBy(() -> module.kernel("weft_nothing", 8))
          .hasMessageContaining("the kernels partition have no weft_nothing");
    }
  }

  @Test
  void argumentsAreCheckedFieldByField() {
    try (CudaModule module = CudaModule.load(device, "partition");
        CudaMemory hashes = memory.take(4 * ROWS)) {
      CudaKernel hash = module.kernel("weft_hash", ARGUMENT_BYTES);
      assertThatThrownBy(() -> hash.arguments().putInt(1).putLong(2))
          .hasMessageContaining("a field of 8 bytes does not fit after 4 of 2592 bytes");
      assertThatThrownBy(() -> hash.arguments().fill().putInt(1))
          .hasMessageContaining("does not fit after 2592 of 2592 bytes for weft_hash");
    }
  }

  @Test
  @UsesDoubles
  void launchesThatDoNotFitAreRefused() {
    try (CudaDevice second = DoubleLibraries.cuda().open(1);
        CudaStream elsewhere = CudaStream.open(second, "elsewhere", Priority.NORMAL);
        CudaStream here = CudaStream.open(device, "here", Priority.NORMAL);
        CudaMemory hashes = memory.take(4 * ROWS)) {
      CudaModule module = CudaModule.load(device, "partition");
      CudaKernel hash = module.kernel("weft_hash", ARGUMENT_BYTES);
      KernelArguments arguments = noColumns(hash, hashes, 1);
      assertThatThrownBy(() -> hash.launch(elsewhere, 1, 32, arguments))
          .hasMessageContaining("is not of the device of stream elsewhere");
      assertThatThrownBy(() -> hash.launch(here, 0, 32, arguments))
          .hasMessageContaining("cannot run in 0 blocks of 32 threads");
      assertThatThrownBy(() -> hash.launch(here, 1, 1025, arguments))
          .hasMessageContaining("cannot run in 1 blocks of 1025 threads");
      assertThatThrownBy(() -> hash.launch(here, 1, 32, hash.arguments().putLong(1)))
          .hasMessageContaining("takes 2592 bytes of arguments, not 8 of 2592");
      module.close();
      module.close();
      assertThatThrownBy(() -> hash.launch(here, 1, 32, arguments))
          .hasMessageContaining("the kernels partition on cuda:0 (Weft test double 0) were closed");
    }
  }

  /** Errors that a device would accept, or report much later. */
  @Test
  @UsesDoubles
  void doubleReportsWrongArgumentsOfKernels() {
    try (CudaDevice second = DoubleLibraries.cuda().open(1);
        CudaMemoryPool others = CudaMemoryPool.open(second, CudaMemoryPool.Kind.DEVICE, 4 << 20);
        CudaMemory other = others.take(4 * ROWS);
        CudaStream stream = CudaStream.open(device, "wrong", Priority.NORMAL);
        CudaModule module = CudaModule.load(device, "partition")) {
      CudaKernel hash = module.kernel("weft_hash", ARGUMENT_BYTES);
      assertThatThrownBy(() -> hash.launch(stream, 1, 32, noColumns(hash, other, 1)))
          .isInstanceOf(CudaException.class);
      assertThat(DoubleLibraries.violations())
          .contains("weft_hash uses memory of device 1 on device 0");
      CudaMemory hashes = memory.take(4 * ROWS);
      KernelArguments arguments = noColumns(hash, hashes, 1);
      hashes.close();
      memory.trim();
      assertThatThrownBy(() -> hash.launch(stream, 1, 32, arguments))
          .isInstanceOf(CudaException.class);
      assertThat(DoubleLibraries.violations())
          .contains("weft_hash uses memory that was freed, at byte 0 of its arguments");
      CudaKernel wrong = module.kernel("weft_hash", 64);
      assertThatThrownBy(() -> wrong.launch(stream, 1, 32, wrong.arguments().fill()))
          .isInstanceOf(CudaException.class);
      assertThat(DoubleLibraries.violations())
          .contains("weft_hash takes 2592 bytes of arguments, not 64");
      assertThatThrownBy(() -> hash.launch(stream, 1, 512, hash.arguments().fill()))
          .isInstanceOf(CudaException.class);
      assertThat(DoubleLibraries.violations()).contains("weft_hash in 1 blocks of 512 threads");
    }
  }

  /** Closes the module while a kernel runs; the double would report that. */
  @Test
  @UsesDoubles
  void kernelsStayLoadedUntilTheirUsesHaveEnded() {
    CudaModule module = CudaModule.load(device, "partition");
    HostEvent use = new HostEvent("for the test");
    try (CudaStream stream = CudaStream.open(device, "busy", Priority.NORMAL);
        CudaMemory hashes = memory.take(4 * ROWS)) {
      CudaKernel hash = module.kernel("weft_hash", ARGUMENT_BYTES);
      DoubleLibraries.cudaControls().cudaDoublePause(1);
      hash.launch(stream, 1, 32, noColumns(hash, hashes, 1));
      module.usedUntil(use);
      module.close();
      assertThat(DoubleLibraries.violations()).isEmpty();
      assertThat(DoubleLibraries.live()).contains("modules: 1");
      DoubleLibraries.cudaControls().cudaDoublePause(0);
      assertThat(stream.awaitIdle(Deadline.after(TIMEOUT))).isTrue();
      use.complete();
      assertThat(DoubleLibraries.live()).doesNotContain("modules");
    }
    assertThatThrownBy(() -> module.usedUntil(use)).hasMessageContaining("were closed");
  }

  @Test
  @UsesDoubles
  void doubleReportsMemoryAndModulesFreedTooEarly() {
    long hashes = DriverMemory.allocate(device, 4 * ROWS, CudaMemoryPool.Kind.DEVICE);
    CudaModule module = CudaModule.load(device, "partition");
    CudaKernel hash = module.kernel("weft_hash", ARGUMENT_BYTES);
    KernelArguments arguments = hash.arguments().putLong(hashes).putLong(ROWS).fill();
    try (CudaStream stream = CudaStream.open(device, "busy", Priority.NORMAL)) {
      DoubleLibraries.cudaControls().cudaDoublePause(1);
      hash.launch(stream, 1, 32, arguments);
      assertThatThrownBy(() -> DriverMemory.free(device, hashes, CudaMemoryPool.Kind.DEVICE))
          .isInstanceOf(CudaException.class);
      assertThat(DoubleLibraries.violations()).contains("while 1 pieces of work use them");
      module.close();
      assertThat(DoubleLibraries.violations()).contains("cuModuleUnload while work");
      DoubleLibraries.cudaControls().cudaDoublePause(0);
    }
    DriverMemory.free(device, hashes, CudaMemoryPool.Kind.DEVICE);
  }
}
