package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Event.State;
import io.weft.device.HostEvent;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.memory.Memory;
import io.weft.testgpus.UsesGpu;
import java.time.Duration;
import java.util.HexFormat;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Device memory of one process that another process maps. */
@UsesGpu
class IpcMemoryTest {
  private static final int BYTES = ExportingProcess.BYTES;

  private CudaDevice device;
  private ExportingProcess other;

  @BeforeEach
  void open() throws Exception {
    device = DoubleLibraries.cuda().open(0);
    other = new ExportingProcess();
  }

  @AfterEach
  void nothingIsLeaked() {
    other.close();
    device.close();
    DoubleLibraries.assertClean();
  }

  private IpcHandle handle() throws Exception {
    return IpcHandle.decode(HexFormat.of().parseHex(other.ask("")));
  }

  @Test
  void memoryIsReadAndWrittenInPlace() throws Exception {
    IpcHandle handle = handle();
    assertThat(handle.offset()).isPositive();
    try (CudaMemoryPool pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 1 << 20);
        CudaMemory host = pinned.take(BYTES);
        CudaStream stream = CudaStream.open(device, "ipc", Priority.NORMAL);
        IpcMemory memory = IpcMemory.open(device, handle)) {
      assertThat(memory.bytes()).isEqualTo(BYTES);
      assertThat(device.isDeviceMemory(memory.address())).isTrue();
      stream.copyToHost(host.address(), memory.address(), BYTES);
      assertThat(stream.awaitIdle(Deadline.after(Duration.ofSeconds(60)))).isTrue();
      assertThat(Memory.getByte(host.address() + BYTES - 1)).isEqualTo((byte) 7);
      Memory.setMemory(host.address(), BYTES, (byte) 9);
      stream.copyToDevice(memory.address(), host.address(), BYTES);
      assertThat(stream.awaitIdle(Deadline.after(Duration.ofSeconds(60)))).isTrue();
    }
    assertThat(other.ask("look")).isEqualTo("9 9");
    assertThat(other.ask("end")).isEqualTo(".");
  }

  /** The holder has closed it; the lease keeps it. */
  @Test
  void leaseKeepsTheMemoryUntilItIsClosed() throws Exception {
    IpcMemory first = IpcMemory.open(device, handle());
    assertThat(other.ask("taken")).isEqualTo("20480");
    first.close();
    assertThat(other.ask("end")).isEqualTo(".");
  }

  @Test
  @UsesDoubles
  void memoryThatIsFreedWhileItIsMappedIsReported() throws Exception {
    IpcHandle handle = handle();
    try (IpcMemory memory = IpcMemory.open(device, handle);
        IpcMemory again = IpcMemory.open(device, handle)) {
      assertThat(again.address()).isEqualTo(memory.address());
      assertThat(other.ask("end"))
          .contains("while process " + ProcessHandle.current().pid() + " maps them");
    }
  }

  @Test
  void useKeepsItMappedBeyondItsClose() throws Exception {
    IpcMemory memory = IpcMemory.open(device, handle());
    HostEvent use = new HostEvent("use");
    memory.usedUntil(use);
    memory.close();
    memory.close();
    assertThatThrownBy(memory::address).hasMessageContaining("closed");
    assertThat(memory.unmapped().state()).isEqualTo(State.PENDING);
    use.complete();
    assertThat(memory.unmapped().state()).isEqualTo(State.COMPLETE);
    assertThatThrownBy(() -> memory.usedUntil(use)).hasMessageContaining("unmapped");
  }

  @Test
  @UsesDoubles
  void memoryOfAProcessThatWasKilledStaysWhereItIsMapped() throws Exception {
    IpcHandle handle = handle();
    try (IpcMemory memory = IpcMemory.open(device, handle)) {
      other.kill();
      assertThat(Memory.getByte(memory.address())).isEqualTo((byte) 7);
    }
    assertThatThrownBy(() -> IpcMemory.open(device, handle))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("mapping " + BYTES + " bytes of GPU")
        .hasMessageContaining("of process " + handle.pid());
  }

  @Test
  void handleThatReachesBeyondTheMemoryIsRefused() throws Exception {
    IpcHandle handle = handle();
    IpcHandle longer =
        new IpcHandle(handle.pid(), handle.gpu(), handle.offset(), 1 << 20, handle.handle());
    assertThatThrownBy(() -> IpcMemory.open(device, longer))
        .hasMessageContaining("reaches beyond the 1048576 bytes there");
    assertThatThrownBy(() -> IpcHandle.decode(new byte[17])).hasMessageContaining("17 bytes");
  }

  @Test
  void ownMemoryAndMemoryOfOtherKindsAreRefused() {
    try (CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
        CudaMemory memory = pool.take(100);
        IpcExport export = IpcExport.of(memory);
        CudaMemoryPool pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 1 << 20);
        CudaMemory host = pinned.take(100)) {
      assertThatThrownBy(() -> IpcMemory.open(device, export.handle()))
          .hasMessageContaining("is of this process");
      assertThatThrownBy(() -> IpcExport.of(host))
          .hasMessageContaining("pinned host memory cannot be exported");
    }
  }
}
