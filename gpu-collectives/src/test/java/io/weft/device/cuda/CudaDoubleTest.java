package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Lane.Priority;
import io.weft.device.library.DoubleLibraries;
import io.weft.device.library.UsesDoubles;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The double notes what the driver lets pass: without that the other tests would prove little. */
@UsesDoubles
class CudaDoubleTest {
  private CudaDevice device;

  @BeforeEach
  void open() {
    device = DoubleLibraries.cuda().open(0);
    device.use();
  }

  @AfterEach
  void nothingIsLeftBehind() {
    DoubleLibraries.cudaControls().cudaDoublePause(0);
    device.close();
    DoubleLibraries.assertClean();
  }

  @Test
  void waitingForAnEventThatWasNeverRecorded() {
    long[] event = new long[1];
    CudaLibrary.check(CudaFunctions.cuEventCreate(event, 2), "cuEventCreate");
    try (CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL)) {
      assertThat(CudaFunctions.cuStreamWaitEvent(stream.handle(), event[0], 0)).isNotZero();
      assertThat(CudaFunctions.cuEventQuery(event[0])).isNotZero();
    }
    CudaLibrary.check(CudaFunctions.cuEventDestroy_v2(event[0]), "cuEventDestroy");
    assertThat(DoubleLibraries.violations())
        .contains("cuStreamWaitEvent on an event that was never recorded")
        .contains("cuEventQuery on an event that was never recorded");
  }

  @Test
  void contextOfAnotherDevice() {
    try (CudaDevice other = DoubleLibraries.cuda().open(1);
        CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL)) {
      other.use();
      assertThat(CudaFunctions.cuStreamQuery(stream.handle())).isNotZero();
    }
    assertThat(DoubleLibraries.violations())
        .contains("on a stream of device 0 in the context of device 1");
  }

  @Test
  void memoryFreedWhileInFlight() {
    try (CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
        CudaMemory memory = pool.take(4096);
        CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL)) {
      DoubleLibraries.cudaControls().cudaDoublePause(1);
      stream.copyOnDevice(memory.address(), memory.address() + 2048, 1024);
      assertThat(CudaFunctions.cuMemFree_v2(memory.address())).isNotZero();
      DoubleLibraries.cudaControls().cudaDoublePause(0);
    }
    assertThat(DoubleLibraries.violations()).contains("cuMemFree of 1048576 bytes while");
  }

  @Test
  void handlesThatAreLeftBehind() {
    CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL);
    assertThat(DoubleLibraries.live()).contains("streams: 1").contains("retained contexts: 1");
    stream.close();
    assertThat(DoubleLibraries.live()).doesNotContain("streams");
  }

  @Test
  void hostMemoryTakenForDeviceMemory() {
    try (CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL);
        CudaMemoryPool pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 1 << 20);
        CudaMemory memory = pinned.take(4096)) {
      assertThat(
              CudaFunctions.cuMemcpyDtoDAsync_v2(
                  memory.address(), memory.address() + 2048, 8, stream.handle()))
          .isNotZero();
    }
    assertThat(DoubleLibraries.violations()).contains("8 bytes are not on a device");
  }
}
