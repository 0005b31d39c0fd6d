package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Buffers in device memory are used in place: nothing is copied through the host. */
@UsesDoubles
class NcclDeviceMemoryTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  private static final long ROWS = 40_000;

  @TempDir Path folder;

  private RankGang gang(int nranks) {
    return RankGang.open(
        GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder))),
        nranks,
        LONG);
  }

  @BeforeEach
  void forgetEarlierCopies() {
    DoubleLibraries.cudaControls().cudaDoubleHostCopies();
  }

  @AfterEach
  void nothingIsCopiedOrLeaked() {
    GpuDoubles.closeDevices();
    assertThat(DoubleLibraries.cudaControls().cudaDoubleHostCopies()).isZero();
    DoubleLibraries.assertClean();
  }

  private static CudaMemoryPool pool(Communicator communicator) {
    return CudaMemoryPool.open(
        GpuDoubles.device(communicator.rank()), CudaMemoryPool.Kind.DEVICE, 8 << 20);
  }

  private static TypedBuffer typed(CudaMemory memory, DataType type) {
    return TypedBuffer.of(new DeviceBuffer(memory), 0, type, memory.bytes() / type.bytes());
  }

  @Test
  void allReduce() {
    try (RankGang gang = gang(3)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory memory = pool.take(40_000)) {
              TypedBuffer data = typed(memory, DataType.FLOAT32);
              Values.fill(data, communicator.rank());
              communicator.allReduce(data, ReduceOp.SUM);
              Values.check("sum", data, i -> Values.reduced(DataType.FLOAT32, ReduceOp.SUM, 3, i));
            }
            assertThat(communicator.metrics().total(Algorithm.NCCL).calls()).isOne();
          });
    }
  }

  /**
   * One group of sends and receives, with pairs that send nothing, a large pair, and untouched
   * gaps.
   */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 5})
  void raggedAllToAllIsOneGroup(int nranks) {
    int updates = 2;
    int row = 3;
    try (RankGang gang = gang(nranks)) {
      DoubleLibraries.ncclControls().ncclDoubleLaunches();
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory from = pool.take(ROWS * 24);
                CudaMemory to = pool.take(ROWS * 24)) {
              TypedBuffer send = typed(from, DataType.INT64);
              TypedBuffer receive = typed(to, DataType.INT64);
              Values.fill(send, communicator.rank());
              Values.fill(receive, i -> -1);
              RaggedLayout layout =
                  RaggedContract.layout(
                      communicator.rank(), nranks, updates, row, RaggedContract.MIXED);
              communicator.raggedAllToAll(send, receive, layout);
              checkArrived(communicator, receive, updates, row);
            }
            assertThat(communicator.metrics().total(Algorithm.NCCL).calls()).isOne();
            assertThat(communicator.metrics().total(Algorithm.THROUGH_HOST).calls()).isZero();
          });
      assertThat(DoubleLibraries.ncclControls().ncclDoubleLaunches()).isEqualTo(nranks);
    }
  }

  private static void checkArrived(
      Communicator communicator, TypedBuffer receive, int updates, int row) {
    int nranks = communicator.nranks();
    double[] expected = new double[(int) receive.count()];
    Arrays.fill(expected, -1);
    for (int from = 0; from < nranks; from++) {
      RaggedLayout theirs = RaggedContract.layout(from, nranks, updates, row, RaggedContract.MIXED);
      for (int update = 0; update < updates; update++) {
        int entry = communicator.rank() * updates + update;
        for (int i = 0; i < theirs.sendSize(entry) * row; i++) {
          expected[(int) theirs.targetOffset(entry) * row + i] =
              Values.of(from, theirs.sendOffset(entry) * row + i);
        }
      }
    }
    Values.check("ragged", receive, i -> expected[(int) i]);
  }
}
