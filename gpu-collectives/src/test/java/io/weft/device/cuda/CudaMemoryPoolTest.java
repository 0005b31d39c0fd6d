package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.HostEvent;
import io.weft.device.library.DoubleLibraries;
import io.weft.device.library.UsesDoubles;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@UsesDoubles
class CudaMemoryPoolTest {
  private CudaDevice device;

  @BeforeEach
  void open() {
    device = DoubleLibraries.cuda().open(1);
  }

  @AfterEach
  void nothingIsLeftBehind() {
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
      assertThat(pool.reservedBytes()).isEqualTo(2 * 8192);
    }
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
      assertThatThrownBy(() -> memory.usedUntil(use)).hasMessageContaining("given back");
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
      assertThatThrownBy(() -> pool.take(1))
          .hasMessageContaining("device memory of cuda:1")
          .hasMessageContaining("exceed the budget");
    }
  }

  @Test
  void fullDeviceIsTheDriversOwnError() {
    try (CudaMemoryPool pool =
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, Long.MAX_VALUE)) {
      assertThatThrownBy(() -> pool.take(device.freeBytes() + 1))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY");
    }
  }
}
