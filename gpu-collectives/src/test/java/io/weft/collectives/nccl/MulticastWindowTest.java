package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.operation.AllGather;
import io.weft.collectives.operation.Broadcast;
import io.weft.collectives.replay.MovedBuffers;
import io.weft.collectives.replay.Recording;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaMemorySource;
import io.weft.device.cuda.VirtualMemory;
import io.weft.device.descriptor.OpenDescriptors;
import io.weft.device.library.DoubleLibraries;
import io.weft.device.library.UsesDoubles;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory that one write reaches on all ranks: when it is used, refusals, failures, and its end. */
@UsesDoubles
class MulticastWindowTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int EVERY = 0xff;
  private static final int EVERY_SECOND = 0x55;
  private static final long BYTES = 4 << 20;
  private static final int COUNT = 1001;

  @TempDir Path folder;

  private long socketsBefore;
  private long filesBefore;

  private CommunicatorFactory factory() {
    return GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder)));
  }

  private RankGang gang(int nranks, Duration timeout) {
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
  void nothingIsLeftBehind() {
    DoubleLibraries.cudaControls().cudaDoubleHold(-1);
    DoubleLibraries.cudaControls().cudaDoubleMulticast(EVERY_SECOND);
    DoubleLibraries.cudaControls().cudaDoubleComputeCapability(9);
    DoubleLibraries.cudaControls().cudaDoubleFailBindings(0);
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
    assertThat(OpenDescriptors.count("socket:")).isEqualTo(socketsBefore);
    assertThat(OpenDescriptors.count("weft-cuda-double")).isEqualTo(filesBefore);
  }

  /** What one rank has. */
  private record Buffers(CudaMemoryPool pool, CudaMemory receive, CudaMemoryPool plain) {
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

  private static SharedWindow share(Communicator communicator, CudaMemory memory) {
    return ((DeviceCommunicator) communicator).shareByMulticast(memory);
  }

  private static TypedBuffer ints(CudaMemory memory, long offset, long count) {
    return TypedBuffer.of(new DeviceBuffer(memory), offset, DataType.INT32, count);
  }

  private static void gather(Communicator communicator, Buffers buffers, long offset) {
    int nranks = communicator.nranks();
    try (CudaMemory memory = buffers.plain().take(4 * COUNT)) {
      TypedBuffer send = ints(memory, 0, COUNT);
      Values.fill(send, communicator.rank());
      TypedBuffer receive = ints(buffers.receive(), offset, (long) COUNT * nranks);
      communicator.allGather(send, receive);
      Values.check("gathered", receive, i -> Values.of((int) (i / COUNT), i % COUNT));
    }
  }

  private static long calls(Communicator communicator, Algorithm algorithm) {
    return communicator.metrics().total(algorithm).calls();
  }

  @Test
  void memoryInTheWindowIsWrittenByMulticastAndOtherMemoryByNccl() {
    try (RankGang gang = gang(3, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            gather(communicator, buffers, 0);
            assertThat(calls(communicator, Algorithm.NCCL)).isOne();
            SharedWindow window = share(communicator, buffers.receive());
            assertThat(window.memory()).isSameAs(buffers.receive());
            for (int round = 0; round < 10; round++) {
              gather(communicator, buffers, 20L * round);
            }
            assertThat(calls(communicator, Algorithm.MULTICAST)).isEqualTo(10);
            assertThat(calls(communicator, Algorithm.NCCL)).isOne();
            window.close();
            gather(communicator, buffers, 0);
            assertThat(calls(communicator, Algorithm.NCCL)).isEqualTo(2);
            buffers.close();
          });
    }
  }

  /** All come to the same verdict, also the rank that could. */
  @Test
  void oneThatReceivesElsewhereIsEnoughForNccl() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            try (SharedWindow window = share(communicator, buffers.receive())) {
              gather(communicator, buffers, 4L * communicator.rank());
              assertThat(calls(communicator, Algorithm.NCCL)).isOne();
              assertThat(window.memory().bytes()).isEqualTo(BYTES);
            }
            buffers.close();
          });
    }
  }

  /** One behind the other on the stream, and one that NCCL does between them. */
  @Test
  void groupsMixBothWays() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            int rank = communicator.rank();
            try (SharedWindow window = share(communicator, buffers.receive());
                CudaMemory memory = buffers.plain().take(12 * COUNT)) {
              TypedBuffer send = ints(memory, 0, COUNT);
              Values.fill(send, rank);
              TypedBuffer here = ints(window.memory(), 12, 2L * COUNT);
              TypedBuffer there = ints(window.memory(), 1 << 20, COUNT);
              TypedBuffer apart = ints(memory, 4 * COUNT, 2L * COUNT);
              communicator.runGroup(
                  List.of(new AllGather(send, here), new Broadcast(send, there, 1)));
              assertThat(calls(communicator, Algorithm.MULTICAST)).isEqualTo(2);
              Values.check("gathered", here, i -> Values.of((int) (i / COUNT), i % COUNT));
              Values.check("broadcast", there, i -> Values.of(1, i));
              communicator.runGroup(
                  List.of(
                      new Broadcast(send, there, 0),
                      new AllGather(send, apart),
                      new AllGather(send, here)));
              assertThat(calls(communicator, Algorithm.NCCL)).isEqualTo(3);
              Values.check("broadcast", there, i -> Values.of(0, i));
              Values.check("apart", apart, i -> Values.of((int) (i / COUNT), i % COUNT));
            }
            buffers.close();
          });
    }
  }

  @Test
  void graphsGoByNccl() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            try (SharedWindow window = share(communicator, buffers.receive())) {
              TypedBuffer data = ints(window.memory(), 0, COUNT);
              Values.fill(data, communicator.rank());
              communicator.barrier();
              try (Recording recording =
                  Recording.record(
                      communicator, MovedBuffers.REFUSE, body -> body.broadcast(data, 1))) {
                assertThat(recording.whyNoGraph()).isEmpty();
                recording.replay();
                Values.check("broadcast", data, i -> Values.of(1, i));
              }
              assertThat(calls(communicator, Algorithm.MULTICAST)).isZero();
            }
            buffers.close();
          });
    }
  }

  @Test
  void windowKeepsItsMemory() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            SharedWindow window = share(communicator, buffers.receive());
            buffers.receive().close();
            assertThat(buffers.pool().takenBytes()).isPositive();
            window.close();
            window.close();
            assertThat(buffers.pool().takenBytes()).isZero();
            buffers.close();
          });
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void windowEndsWithItsCommunicator(boolean breaks) {
    List<Buffers> buffers;
    List<SharedWindow> windows;
    try (RankGang gang = gang(3, LONG)) {
      buffers = gang.ask(Buffers::of);
      windows =
          gang.ask(communicator -> share(communicator, buffers.get(communicator.rank()).receive()));
      gang.run(communicator -> gather(communicator, buffers.get(communicator.rank()), 0));
      if (breaks) {
        gang.rank(1).abort("for the test");
      }
    }
    windows.forEach(SharedWindow::close);
    buffers.forEach(Buffers::close);
    buffers.forEach(each -> assertThat(each.pool().takenBytes()).isZero());
  }

  /** Rank 0 has other memory; and the communicator goes on. */
  private static void assertRefused(
      RankGang gang, Function<CudaDevice, CudaMemorySource> first, long bytes, String reason) {
    gang.run(
        communicator -> {
          boolean isFirst = communicator.rank() == 0;
          CudaDevice device = GpuDoubles.device(communicator.rank());
          CudaMemorySource source =
              isFirst ? first.apply(device) : VirtualMemory.forMulticast(device);
          try (CudaMemoryPool pool = CudaMemoryPool.open(device, source, 8 << 20);
              CudaMemory memory = pool.take(isFirst ? bytes : 1000)) {
            CollectiveException failure =
                catchThrowableOfType(CollectiveException.class, () -> share(communicator, memory));
            assertThat(failure.kind()).isEqualTo(Kind.INVALID);
            assertThat(failure).hasMessageContaining(reason);
          }
          communicator.barrier();
        });
  }

  private static void assertRefused(RankGang gang, String reason) {
    assertRefused(gang, VirtualMemory::forMulticast, 1000, reason);
  }

  @Test
  void otherMemoryIsRefusedOnAllRanks() {
    try (RankGang gang = gang(3, LONG)) {
      assertRefused(
          gang,
          VirtualMemory::of,
          1000,
          "rank 0 cannot share memory by multicast: virtual device memory cannot be written");
      assertRefused(
          gang, device -> CudaMemoryPool.Kind.DEVICE, 1000, "device memory cannot be written by");
      assertRefused(
          gang, VirtualMemory::forMulticast, 999, "rank 0 shares 999 bytes by multicast but rank");
    }
  }

  @Test
  void rankWithoutMulticastIsNamedOnAllRanks() {
    try (RankGang gang = gang(3, LONG)) {
      List<Buffers> buffers = gang.ask(Buffers::of);
      DoubleLibraries.cudaControls().cudaDoubleMulticast(EVERY & ~2);
      gang.run(
          communicator ->
              assertThatThrownBy(
                      () -> share(communicator, buffers.get(communicator.rank()).receive()))
                  .hasMessageContaining(
                      "rank 1 cannot share memory by multicast: the driver offers")
                  .hasMessageContaining("no multicast on cuda:1"));
      gang.run(communicator -> gather(communicator, buffers.get(communicator.rank()), 0));
      buffers.forEach(Buffers::close);
    }
  }

  @Test
  void ranksOnTwoHostsAreRefused() {
    List<CommunicatorFactory> factories = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      HostOptions options =
          HostOptions.defaults().withFolder(folder).withHostIdentity("host-" + rank);
      factories.add(GpuDoubles.factory(rank, new HostCommunicators(options)));
    }
    try (RankGang gang = RankGang.open(factories, LONG)) {
      assertRefused(gang, "the 2 ranks have to be 2 to 16 and on one host");
    }
  }

  /** Whichever rank comes first fails, when all have joined: nothing of it stays anywhere. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void bindingThatFailsIsARefusal(int bindings) {
    try (RankGang gang = gang(3, LONG)) {
      List<Buffers> buffers = gang.ask(Buffers::of);
      DoubleLibraries.cudaControls().cudaDoubleFailBindings(bindings);
      gang.run(
          communicator ->
              assertThatThrownBy(
                      () -> share(communicator, buffers.get(communicator.rank()).receive()))
                  .hasMessageContaining("cannot share memory by multicast: binding 4.0 MiB")
                  .hasMessageContaining("CUDA_ERROR_OUT_OF_MEMORY"));
      gang.run(
          communicator -> {
            Buffers own = buffers.get(communicator.rank());
            try (SharedWindow window = share(communicator, own.receive())) {
              gather(communicator, own, 0);
              assertThat(window.memory()).isSameAs(own.receive());
            }
          });
      buffers.forEach(Buffers::close);
    }
  }

  /** The device waits for no longer than the operation may take, and says for whom. */
  @Test
  void rankWhoseDeviceIsStuckIsNamed() throws Exception {
    try (RankGang gang = gang(3, Duration.ofSeconds(4))) {
      List<Buffers> buffers = gang.ask(Buffers::of);
      List<SharedWindow> windows =
          gang.ask(communicator -> share(communicator, buffers.get(communicator.rank()).receive()));
      gang.run(communicator -> gather(communicator, buffers.get(communicator.rank()), 0));
      DoubleLibraries.cudaControls().cudaDoubleHold(2);
      List<Future<CollectiveException>> failures =
          gang.askAsync(
              communicator ->
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> gather(communicator, buffers.get(communicator.rank()), 0)));
      CollectiveException failure = failures.get(0).get(30, TimeUnit.SECONDS);
      DoubleLibraries.cudaControls().cudaDoubleHold(-1);
      assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT);
      assertThat(failure.ranks()).containsExactly(2);
      assertThat(failure).hasMessageMatching(".*rank [01] waited on its device for rank 2.*");
      for (Future<CollectiveException> each : failures) {
        assertThat(each.get(30, TimeUnit.SECONDS)).isNotNull();
      }
      gang.run(communicator -> windows.get(communicator.rank()).close());
      buffers.forEach(Buffers::close);
      buffers.forEach(each -> assertThat(each.pool().takenBytes()).isZero());
    }
  }
}
