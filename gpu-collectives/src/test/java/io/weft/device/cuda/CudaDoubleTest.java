package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.memory.Memory;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The double reports errors that the driver accepts; without that the other tests would prove
 * little.
 */
@UsesDoubles
class CudaDoubleTest {
  private CudaDevice device;

  @BeforeEach
  void open() {
    device = DoubleLibraries.cuda().open(0);
    device.use();
  }

  @AfterEach
  void nothingIsLeaked() {
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
  void handlesThatAreLeaked() {
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

  @Test
  void memoryThatGoesBeforeTheGraphThatRefersToIt() {
    try (CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
        CudaMemory memory = pool.take(4096);
        CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL);
        CudaGraph graph =
            CudaGraph.capture(
                stream,
                "a copy",
                () -> stream.copyOnDevice(memory.address(), memory.address() + 2048, 1024))) {
      assertThat(DoubleLibraries.live()).contains("graphs to launch: 1");
      assertThat(CudaFunctions.cuMemFree_v2(memory.address())).isNotZero();
      graph.launch(stream);
    }
    assertThat(DoubleLibraries.violations())
        .contains("cuMemFree of 1048576 bytes that a graph refers to");
  }

  /** After the error the stream captures no more. */
  @Test
  void whatACaptureMayNotDo() {
    try (CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL)) {
      assertThatThrownBy(() -> CudaGraph.capture(stream, "a mark", () -> stream.mark().close()))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("cuEventRecord");
      assertThatThrownBy(
              () ->
                  CudaGraph.capture(
                      stream,
                      "an allocation",
                      () ->
                          CudaLibrary.check(
                              CudaFunctions.cuMemAlloc_v2(new long[1], 512), "cuMemAlloc")))
          .isInstanceOf(CudaException.class);
      assertThat(stream.awaitIdle(Deadline.after(Duration.ofSeconds(30)))).isTrue();
    }
    assertThat(DoubleLibraries.violations())
        .contains("cuEventRecord on a stream that captures a graph")
        .contains("cuMemAlloc on a thread that captures a graph");
  }

  @Test
  void graphRunsAsOftenAsItIsLaunched() {
    try (CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
        CudaMemory memory = pool.take(4096);
        CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL)) {
      long from = memory.address();
      Memory.setMemory(from, 4096, (byte) 0);
      CudaGraph graph =
          CudaGraph.capture(stream, "a copy", () -> stream.copyOnDevice(from + 2048, from, 1024));
      for (byte round = 1; round < 4; round++) {
        Memory.putByte(from, round);
        graph.launch(stream);
        assertThat(stream.awaitIdle(Deadline.after(Duration.ofSeconds(30)))).isTrue();
        assertThat(Memory.getByte(from + 2048)).isEqualTo(round);
      }
      graph.close();
      assertThatThrownBy(() -> graph.launch(stream)).hasMessageContaining("was closed");
    }
  }

  /** Each thread has its own stream, which runs in parallel with the others. */
  @Test
  void defaultStreamsOfThreads() {
    Deadline now = Deadline.after(Duration.ZERO);
    try (CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
        CudaMemory memory = pool.take(4096)) {
      CudaStream stream = CudaStream.borrowed(device, "of this thread", 2);
      Memory.setMemory(memory.address(), 4096, (byte) 0);
      Memory.putByte(memory.address(), (byte) 7);
      DoubleLibraries.cudaControls().cudaDoublePause(1);
      stream.copyOnDevice(memory.address() + 2048, memory.address(), 1024);
      assertThat(stream.awaitIdle(now)).isFalse();
      assertThat(CompletableFuture.supplyAsync(() -> stream.awaitIdle(now)).join())
          .as("another thread's stream is idle")
          .isTrue();
      DoubleLibraries.cudaControls().cudaDoublePause(0);
      assertThat(stream.awaitIdle(Deadline.after(Duration.ofSeconds(30)))).isTrue();
      assertThat(Memory.getByte(memory.address() + 2048)).isEqualTo((byte) 7);
    }
  }
}
