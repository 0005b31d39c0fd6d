package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Multicast memory of two devices, step by step, and the double's reports of wrong steps. */
@UsesDoubles
class MulticastObjectTest {
  private static final int EVERY_SECOND = 0x55;

  private CudaDevice first;
  private CudaDevice second;
  private long granule;
  private long filesBefore;

  @BeforeEach
  void open() {
    first = DoubleLibraries.cuda().open(0);
    second = DoubleLibraries.cuda().open(2);
    granule = MulticastObject.granularity(2, 1);
    filesBefore = OpenDescriptors.count("weft-cuda-double");
  }

  @AfterEach
  void nothingIsLeaked() {
    DoubleLibraries.cudaControls().cudaDoubleMulticast(EVERY_SECOND);
    DoubleLibraries.cudaControls().cudaDoubleComputeCapability(9);
    assertThat(OpenDescriptors.count("weft-cuda-double")).isEqualTo(filesBefore);
    first.close();
    second.close();
    DoubleLibraries.assertClean();
  }

  private CudaMemoryPool pool(CudaDevice device) {
    return CudaMemoryPool.open(device, VirtualMemory.forMulticast(device), 4 * granule);
  }

  private MulticastObject adopt(MulticastObject object) {
    try (Descriptor descriptor = object.export()) {
      return MulticastObject.of(second, descriptor, 2, granule);
    }
  }

  @Test
  void granulesAreThoseOfTheDriver() {
    assertThat(granule).isEqualTo(2 * VirtualMemory.of(first).granularity());
    assertThat(VirtualMemory.forMulticast(first).granularity()).isEqualTo(granule);
  }

  @Test
  void allProcessesShareOneObject() {
    try (CudaMemoryPool pool = pool(first);
        CudaMemoryPool other = pool(second);
        CudaMemory memory = pool.take(100);
        CudaMemory there = other.take(granule);
        MulticastObject object = MulticastObject.create(first, 2, granule);
        MulticastObject taken = adopt(object)) {
      object.join();
      taken.join();
      assertThat(object.bind(0, memory)).isEqualTo(granule);
      assertThat(taken.bind(0, there)).isEqualTo(granule);
      assertThat(object.map() % granule).isZero();
      assertThat(taken.map() % granule).isZero();
      object.unmap();
      object.unmap();
    }
  }

  /** The real driver would wait forever. */
  @Test
  void bindingAndMappingBeforeAllHaveJoinedIsReported() {
    try (CudaMemoryPool pool = pool(first);
        CudaMemory memory = pool.take(100);
        MulticastObject object = MulticastObject.create(first, 2, granule)) {
      object.join();
      assertThatThrownBy(() -> object.bind(0, memory)).isInstanceOf(CudaException.class);
      assertThat(DoubleLibraries.violations())
          .contains("cuMulticastBindAddr when 1 of 2 devices have been added");
      assertThatThrownBy(object::map).isInstanceOf(CudaException.class);
      assertThat(DoubleLibraries.violations())
          .contains("cuMemMap when 1 of 2 devices have been added");
      assertThatThrownBy(object::join).isInstanceOf(CudaException.class);
      assertThat(DoubleLibraries.violations()).contains("device 0, which was added, or");
    }
  }

  @Test
  void memoryThatIsFreedWhileItIsBoundIsReported() {
    CudaMemoryPool pool = pool(first);
    CudaMemory memory = pool.take(100);
    MulticastObject object = MulticastObject.create(first, 2, granule);
    MulticastObject taken = adopt(object);
    object.join();
    taken.join();
    object.bind(0, memory);
    memory.close();
    pool.close();
    assertThat(DoubleLibraries.violations()).contains("that are bound to a multicast object");
    object.close();
    taken.close();
  }

  @Test
  void memoryOfOtherKindsOrElsewhereIsRefused() {
    try (CudaMemoryPool pool = pool(first);
        CudaMemory memory = pool.take(100);
        CudaMemory behind = pool.take(100);
        CudaMemoryPool plain = CudaMemoryPool.open(first, VirtualMemory.of(first), granule);
        CudaMemory other = plain.take(100)) {
      MulticastObject.requireBindable(memory, granule);
      assertThatThrownBy(() -> MulticastObject.requireBindable(behind, granule))
          .hasMessageContaining("starts at a multiple of " + granule);
      assertThatThrownBy(() -> MulticastObject.requireBindable(memory, 4 * granule))
          .hasMessageContaining("granules of " + 4 * granule + " bytes for multicast")
          .hasMessageContaining("granules of " + granule);
      assertThatThrownBy(() -> MulticastObject.requireBindable(other, granule))
          .hasMessageContaining("virtual device memory cannot be written by multicast");
    }
  }

  @Test
  void devicesWithoutItSayWhy() {
    try (CudaDevice without = DoubleLibraries.cuda().open(1)) {
      assertThat(MulticastSupport.whyNot(first)).isEmpty();
      assertThat(MulticastSupport.whyNot(without).orElseThrow())
          .startsWith("the driver offers no multicast on cuda:1");
      assertThatThrownBy(() -> VirtualMemory.forMulticast(without))
          .hasMessageContaining("the driver offers no multicast");
      DoubleLibraries.cudaControls().cudaDoubleComputeCapability(8);
      assertThat(MulticastSupport.whyNot(first).orElseThrow())
          .contains("is of compute capability 8, multicast needs 9.0 or newer");
    }
  }
}
