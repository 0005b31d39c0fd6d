package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.nccl.CommunicatorWindows.Registration;
import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaMemorySource;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Windows of NCCL. The double checks their memory, order and end. */
@UsesDoubles
class DeviceWindowTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int COUNT = 10_000;

  @TempDir Path folder;

  private RankGang gang(int nranks) {
    return RankGang.open(
        GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder))),
        nranks,
        LONG);
  }

  @AfterEach
  void nothingIsLeaked() {
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  private static CudaMemoryPool pool(Communicator communicator) {
    CudaMemorySource source = new NcclMemory(DoubleLibraries.options());
    return CudaMemoryPool.open(GpuDoubles.device(communicator.rank()), source, 8 << 20);
  }

  /** Registers memory as the buffers of a communicator are registered. */
  static DeviceWindow register(Communicator communicator, CudaMemory memory) {
    NcclCommunicator nccl = (NcclCommunicator) communicator;
    AtomicReference<Registration> made = new AtomicReference<>();
    nccl.inTurn(
        "registering a window",
        deadline -> made.set(new CommunicatorWindows(nccl).registerInTurn(memory, deadline)));
    if (made.get().refusal() != null) {
      throw made.get().refusal();
    }
    return made.get().window();
  }

  private static void sum(Communicator communicator, CudaMemory memory) {
    TypedBuffer data = TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT32, COUNT);
    Values.fill(data, communicator.rank());
    communicator.allReduce(data, ReduceOp.SUM);
    int nranks = communicator.nranks();
    Values.check("sum", data, i -> Values.reduced(DataType.INT32, ReduceOp.SUM, nranks, i));
  }

  @Test
  void operationsRunInWindows() {
    try (RankGang gang = gang(3)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory one = pool.take(4 * COUNT);
                CudaMemory two = pool.take(4 << 20);
                DeviceWindow first = register(communicator, one);
                DeviceWindow second = register(communicator, two)) {
              assertThat(first.memory()).isSameAs(one);
              sum(communicator, one);
              sum(communicator, second.memory());
              communicator.barrier();
            }
          });
      assertThat(DoubleLibraries.live()).doesNotContain("windows").doesNotContain("mappings");
    }
  }

  /** The memory's holder closes it first, while NCCL still uses it. */
  @Test
  void windowKeepsItsMemory() {
    try (RankGang gang = gang(2)) {
      gang.run(
          communicator -> {
            CudaMemoryPool pool = pool(communicator);
            CudaMemory memory = pool.take(4 * COUNT);
            DeviceWindow window = register(communicator, memory);
            memory.close();
            pool.close();
            communicator.barrier();
            assertThat(DoubleLibraries.live()).contains("mappings: 2").contains("nccl windows: 4");
            communicator.barrier();
            window.close();
          });
    }
  }

  @Test
  void windowOutlivesItsCommunicator() {
    List<DeviceWindow> windows;
    List<CudaMemoryPool> pools;
    try (RankGang gang = gang(2)) {
      pools = gang.ask(communicator -> pool(communicator));
      windows =
          gang.ask(
              communicator -> {
                CudaMemory memory = pools.get(communicator.rank()).take(4 * COUNT);
                DeviceWindow window = register(communicator, memory);
                memory.close();
                return window;
              });
    }
    assertThat(DoubleLibraries.live()).doesNotContain("windows").contains("mappings: 2");
    windows.forEach(DeviceWindow::close);
    windows.forEach(DeviceWindow::close);
    pools.forEach(CudaMemoryPool::close);
  }

  @Test
  void windowOfACommunicatorThatBrokeIsClosed() {
    try (RankGang gang = gang(2)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory memory = pool.take(4 * COUNT);
                DeviceWindow window = register(communicator, memory)) {
              communicator.abort("for the test");
              assertThatThrownBy(() -> sum(communicator, window.memory()))
                  .isInstanceOf(CollectiveException.class);
            }
          });
    }
  }

  private static List<CollectiveException> failures(RankGang gang, CudaMemorySource first) {
    return gang.ask(
        communicator -> {
          boolean isFirst = communicator.rank() == 0;
          CudaMemorySource source = isFirst ? first : new NcclMemory(DoubleLibraries.options());
          try (CudaMemoryPool pool =
                  CudaMemoryPool.open(GpuDoubles.device(communicator.rank()), source, 8 << 20);
              CudaMemory memory = pool.take(isFirst ? COUNT : 2 * COUNT)) {
            return catchThrowableOfType(
                CollectiveException.class, () -> register(communicator, memory));
          }
        });
  }

  /** The communicator stays usable. */
  @Test
  void memoryThatCannotBeAWindowIsRefusedOnAllRanks() {
    try (RankGang gang = gang(2)) {
      assertThat(failures(gang, CudaMemoryPool.Kind.DEVICE))
          .allSatisfy(
              failure -> {
                assertThat(failure.kind()).isEqualTo(Kind.INVALID);
                assertThat(failure)
                    .hasMessageContaining("rank 0 cannot register a window: device memory cannot");
              });
      gang.run(Communicator::barrier);
    }
  }

  @Test
  void differentSizesAreRefusedOnAllRanks() {
    try (RankGang gang = gang(2)) {
      assertThat(failures(gang, new NcclMemory(DoubleLibraries.options())))
          .allSatisfy(
              failure -> {
                assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
                assertThat(failure)
                    .hasMessageContaining("window of 10000 bytes but rank 1 one of 20000");
              });
      gang.run(Communicator::barrier);
    }
  }

  @Test
  void memoryInTheMiddleOfASegmentIsRefused() {
    try (RankGang gang = gang(1)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory first = pool.take(100);
                CudaMemory second = pool.take(100)) {
              assertThat(second.address()).isEqualTo(first.address() + 512);
              assertThatThrownBy(() -> register(communicator, second))
                  .hasMessageContaining("starts at a multiple of 4096");
            }
          });
    }
  }
}
