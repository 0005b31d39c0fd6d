package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The double reports errors that NCCL ignores. Otherwise the contract tests on it would prove
 * little.
 */
@UsesDoubles
class NcclDoubleTest {
  private static final int BYTES = 4096;
  private static final int INT8 = 0;

  private CudaDevice device;
  private CudaStream stream;
  private CudaMemoryPool pool;
  private CudaMemory memory;
  private NcclComm comm;

  @BeforeEach
  void open() {
    device = GpuDoubles.device(0);
    NcclLibrary.load(DoubleLibraries.options());
    stream = CudaStream.open(device, "test", Priority.NORMAL);
    pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
    memory = pool.take(BYTES);
    comm = start();
  }

  @AfterEach
  void nothingIsLeaked() {
    device.use();
    comm.abort();
    stream.close();
    memory.close();
    pool.close();
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  private static NcclComm start() {
    byte[] id = new byte[NcclUniqueId.BYTES];
    assertThat(NcclFunctions.ncclGetUniqueId(id)).isZero();
    return NcclComm.start("test", id, 0, 1, 0);
  }

  private static void awaitReady(NcclComm comm) {
    comm.awaitReady("test", Deadline.after(Duration.ofSeconds(60)), () -> {});
  }

  private int allGather(long address, CudaStream on) {
    return NcclFunctions.ncclAllGather(address, address, BYTES, INT8, comm.handle(), on.handle());
  }

  @Test
  void leakedHandle() {
    awaitReady(comm);
    assertThat(DoubleLibraries.live()).contains("nccl communicators: 1");
  }

  @Test
  void useFromAnotherThread() throws Exception {
    awaitReady(comm);
    Thread other =
        new Thread(
            () -> {
              device.use();
              int unused = allGather(memory.address(), stream);
            });
    other.start();
    other.join(60_000);
    assertThat(DoubleLibraries.violations()).contains("ncclAllGather from another thread");
  }

  @Test
  void useBeforeTheLastCallHasFinished() {
    awaitReady(comm);
    assertThat(allGather(memory.address(), stream)).isEqualTo(NcclLibrary.IN_PROGRESS);
    assertThat(allGather(memory.address(), stream)).isNotZero();
    assertThat(DoubleLibraries.violations()).contains("while the communicator is still busy");
  }

  @Test
  void memoryOfTheHost() {
    awaitReady(comm);
    try (CudaMemoryPool pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 1 << 20);
        CudaMemory host = pinned.take(BYTES)) {
      assertThat(allGather(host.address(), stream)).isNotZero();
    }
    assertThat(DoubleLibraries.violations()).contains("are not in memory of device 0");
  }

  @Test
  void severalStreamsInAGroup() {
    awaitReady(comm);
    try (CudaStream other = CudaStream.open(device, "other", Priority.NORMAL)) {
      NcclFunctions.ncclGroupStart();
      assertThat(allGather(memory.address(), stream)).isZero();
      assertThat(allGather(memory.address(), other)).isNotZero();
      NcclFunctions.ncclGroupEnd();
    }
    awaitReady(comm);
    assertThat(DoubleLibraries.violations()).contains("two communicators or streams in one group");
  }

  @Test
  void contextOfAnotherDevice() {
    awaitReady(comm);
    GpuDoubles.device(1).use();
    assertThat(allGather(memory.address(), stream)).isNotZero();
    assertThat(DoubleLibraries.violations())
        .contains("in the context of device 1, the communicator has 0");
  }

  @Test
  void endWithoutTheOtherRanks() {
    awaitReady(comm);
    NcclComm other = start();
    awaitReady(other);
    assertThat(NcclFunctions.ncclCommDestroy(other.handle())).isZero();
    assertThat(DoubleLibraries.violations()).contains("ncclCommDestroy, which blocks");
  }
}
