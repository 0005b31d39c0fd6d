package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.DoubleLibraries;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.OpenDescriptors;
import io.weft.device.cuda.VirtualMemory;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Ranks on doubles that all have multicast. Checks that no resource is leaked. */
abstract class MulticastGangs {
  static final Duration LONG = Duration.ofSeconds(60);
  static final int EVERY = 0xff;
  private static final int EVERY_SECOND = 0x55;
  static final long BYTES = 4 << 20;
  static final int COUNT = 1001;

  @TempDir Path folder;

  private long socketsBefore;
  private long filesBefore;

  private CommunicatorFactory factory() {
    return GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder)));
  }

  RankGang gang(int nranks, Duration timeout) {
    return RankGang.open(factory(), nranks, timeout);
  }

  @BeforeEach
  void allDevicesHaveIt() {
    DoubleLibraries.cuda();
    DoubleLibraries.cudaControls().cudaDoubleMulticast(EVERY);
    socketsBefore = OpenDescriptors.count("socket:");
    filesBefore = OpenDescriptors.count("weft-cuda-double");
  }

  @AfterEach
  void nothingIsLeaked() {
    DoubleLibraries.cudaControls().cudaDoubleHold(-1);
    DoubleLibraries.cudaControls().cudaDoubleMulticast(EVERY_SECOND);
    DoubleLibraries.cudaControls().cudaDoubleComputeCapability(9);
    DoubleLibraries.cudaControls().cudaDoubleFailBindings(0);
    DoubleLibraries.cudaControls().cudaDoubleFailUnbindings(0);
    DoubleLibraries.cudaControls().cudaDoubleDescriptors(1);
    DoubleLibraries.cudaControls().cudaDoubleHoldKernel(-1, "");
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
    assertThat(OpenDescriptors.count("socket:")).isEqualTo(socketsBefore);
    assertThat(OpenDescriptors.count("weft-cuda-double")).isEqualTo(filesBefore);
  }

  /** The buffers of one rank. */
  record Buffers(CudaMemoryPool pool, CudaMemory receive, CudaMemoryPool plain) {
    static Buffers of(Communicator communicator) {
      CudaDevice device = GpuDoubles.device(communicator.rank());
      CudaMemoryPool pool =
          CudaMemoryPool.open(device, VirtualMemory.forMulticast(device), 4 * BYTES);
      return new Buffers(
          pool,
          pool.take(BYTES),
          CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 4 * BYTES));
    }

    void close() {
      receive.close();
      pool.close();
      plain.close();
    }
  }

  static SharedWindow share(Communicator communicator, CudaMemory memory) {
    return ((DeviceCommunicator) communicator).shareByMulticast(memory);
  }

  static TypedBuffer ints(CudaMemory memory, long offset, long count) {
    return TypedBuffer.of(new DeviceBuffer(memory), offset, DataType.INT32, count);
  }

  static void gather(Communicator communicator, Buffers buffers, long offset) {
    int nranks = communicator.nranks();
    try (CudaMemory memory = buffers.plain().take(4 * COUNT)) {
      TypedBuffer send = ints(memory, 0, COUNT);
      Values.fill(send, communicator.rank());
      TypedBuffer receive = ints(buffers.receive(), offset, (long) COUNT * nranks);
      communicator.allGather(send, receive);
      Values.check("gathered", receive, i -> Values.of((int) (i / COUNT), i % COUNT));
    }
  }

  static long calls(Communicator communicator, Algorithm algorithm) {
    return communicator.metrics().total(algorithm).calls();
  }
}
