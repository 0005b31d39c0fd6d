package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.symmetric.StepRecording;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.testgpus.DeviceBytes;
import io.weft.testgpus.TestMachine;
import io.weft.testgpus.UsesGpu;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Graphs and windows of one rank, and of two on one GPU where NCCL lets them. Unlike the other
 * tests of graphs and windows, these also run on a machine's own GPU, because no host reads its
 * memory.
 */
@UsesGpu
class GraphAndWindowTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final int COUNT = 10_000;
  private static final int BYTES = Integer.BYTES * COUNT;

  @TempDir Path folder;

  @AfterEach
  void nothingIsLeaked() {
    GpuDoubles.closeDevices();
    TestMachine.assertClean();
  }

  private RankGang gang(int nranks) {
    GpuDoubles.assumeRanks(nranks);
    CommunicatorFactory hosts = new HostCommunicators(HostOptions.defaults().withFolder(folder));
    return RankGang.open(
        (bootstrap, options) ->
            GpuDoubles.factory(bootstrap.rank(), hosts).create(bootstrap, options),
        nranks,
        TIMEOUT);
  }

  private static CudaDevice device(Communicator communicator) {
    return GpuDoubles.device(communicator.rank());
  }

  private static TypedBuffer ints(CudaMemory memory) {
    return TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT32, COUNT);
  }

  /** Fills the memory, runs a sum over all ranks there, and checks it. */
  private static void check(Communicator communicator, CudaMemory memory, int seed, Runnable sum) {
    TypedBuffer host =
        TypedBuffer.wrap(
            ByteBuffer.allocateDirect(BYTES).order(ByteOrder.nativeOrder()), DataType.INT32);
    Values.fill(host, seed + communicator.rank());
    DeviceBytes.write(device(communicator), memory.address(), host.address(), BYTES);
    sum.run();
    DeviceBytes.read(device(communicator), host.address(), memory.address(), BYTES);
    int nranks = communicator.nranks();
    Values.check(
        "sum",
        host,
        i -> IntStream.range(0, nranks).mapToDouble(rank -> Values.of(seed + rank, i)).sum());
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void replaysOfAGraphSumWhatIsThere(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool =
                    CudaMemoryPool.open(device(communicator), CudaMemoryPool.Kind.DEVICE, 8 << 20);
                CudaMemory memory = pool.take(BYTES);
                Recording recording =
                    StepRecording.record(
                        communicator,
                        MovedBuffers.REFUSE,
                        body -> body.allReduce(ints(memory), ReduceOp.SUM))) {
              assertThat(recording.whyNoGraph()).isEmpty();
              for (int seed = 0; seed < 5; seed++) {
                check(communicator, memory, seed, recording::replay);
              }
            }
          });
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void sumsRunInAWindow(int nranks) {
    NcclLibrary.load(TestMachine.options())
        .whyNoWindows()
        .ifPresent(whyNot -> assumeTrue(false, whyNot));
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            NcclMemory source = new NcclMemory(TestMachine.options());
            try (CudaMemoryPool pool = CudaMemoryPool.open(device(communicator), source, 8 << 20);
                CudaMemory memory = pool.take(BYTES);
                DeviceWindow window = DeviceWindowTest.register(communicator, memory)) {
              check(
                  communicator,
                  window.memory(),
                  3,
                  () -> communicator.allReduce(ints(memory), ReduceOp.SUM));
              communicator.barrier();
            }
          });
    }
  }
}
