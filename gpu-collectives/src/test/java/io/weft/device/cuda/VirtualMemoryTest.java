package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.jna.Pointer;
import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import io.weft.testgpus.TestMachine;
import io.weft.testgpus.UsesGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A pool of memory that is reserved, created and mapped; the double checks the steps. */
@UsesGpu
class VirtualMemoryTest {
  private static final long GRANULE = 2 << 20;

  private CudaDevice device;

  @BeforeEach
  void open() {
    device = TestMachine.open(2);
  }

  @AfterEach
  void nothingIsLeaked() {
    device.close();
    DoubleLibraries.assertClean();
  }

  private CudaMemoryPool pool(long budgetBytes) {
    return CudaMemoryPool.open(device, VirtualMemory.of(device), budgetBytes);
  }

  @Test
  void segmentsAreWholeGranules() {
    try (CudaMemoryPool pool = pool(4 * GRANULE);
        CudaMemory small = pool.take(100);
        CudaMemory large = pool.take(GRANULE + 1)) {
      assertThat(device.isDeviceMemory(small.address())).isTrue();
      assertThat(device.isDeviceMemory(large.address() + GRANULE)).isTrue();
      assertThat(pool.reservedBytes()).isEqualTo(3 * GRANULE);
      assertThatThrownBy(() -> pool.take(2 * GRANULE))
          .hasMessageContaining("virtual device memory of " + device.device())
          .hasMessageContaining("exceed the budget");
    }
  }

  @Test
  void fullDeviceLeavesNothingReserved() {
    try (CudaMemoryPool pool = pool(Long.MAX_VALUE)) {
      assertThatThrownBy(() -> pool.take(device.freeBytes() + 1))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY");
      assertThat(DoubleLibraries.live()).doesNotContain("reservations").doesNotContain("mappings");
    }
  }

  @Test
  @UsesGpu(2)
  void memoryOfAnotherDeviceIsRefused() {
    try (CudaDevice other = TestMachine.open(3);
        CudaMemoryPool pool = CudaMemoryPool.open(other, VirtualMemory.of(device), 4 * GRANULE)) {
      assertThatThrownBy(() -> pool.take(1)).hasMessageContaining("in a pool of " + other.device());
      assertThat(pool.reservedBytes()).isZero();
    }
  }

  /** NCCL exports windows by these handles. */
  @ParameterizedTest
  @CsvSource({"0, 0, 1", "1, 1, 9", "1, 0, 1"})
  @UsesDoubles
  void memoryHasTheHandleTypesThatTheDriverPermits(int offered, int permitted, int types) {
    DoubleLibraries.cudaControls().cudaDoubleFabric(offered, permitted);
    try (CudaMemoryPool pool = pool(GRANULE);
        CudaMemory memory = pool.take(1)) {
      assertThat(
              DoubleLibraries.cudaControls().cudaDoubleHandleTypes(new Pointer(memory.address())))
          .isEqualTo(types);
    } finally {
      DoubleLibraries.cudaControls().cudaDoubleFabric(0, 0);
    }
  }

  @Test
  void otherProcessesCannotImportIt() {
    try (CudaMemoryPool pool = pool(GRANULE);
        CudaMemory memory = pool.take(1)) {
      assertThatThrownBy(() -> IpcExport.of(memory))
          .hasMessageContaining("virtual device memory cannot be exported");
    }
  }
}
