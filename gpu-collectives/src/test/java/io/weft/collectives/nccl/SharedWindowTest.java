package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.RaggedLayout;
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
import io.weft.device.cuda.CudaMemorySource;
import io.weft.device.cuda.VirtualMemory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory that the devices of all ranks access: refusals, failures, and its end. */
@UsesDoubles
class SharedWindowTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int ROWS = 3000;

  @TempDir Path folder;

  private CommunicatorFactory factory() {
    return GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder)));
  }

  private RankGang gang(int nranks, Duration timeout) {
    return RankGang.open(factory(), nranks, timeout);
  }

  private static int ncclLaunches() {
    return DoubleLibraries.ncclControls().ncclDoubleLaunches();
  }

  @BeforeEach
  void forgetEarlierWork() {
    int unused = ncclLaunches();
  }

  @AfterEach
  void nothingIsLeaked() {
    DoubleLibraries.cudaControls().cudaDoubleHold(-1);
    DoubleLibraries.cudaControls().cudaDoubleUnreachable(0);
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  /** The buffers of one rank. */
  private record Buffers(CudaMemoryPool pool, CudaMemory send, CudaMemory receive) {
    static Buffers of(Communicator communicator) {
      CudaMemoryPool pool =
          CudaMemoryPool.open(
              GpuDoubles.device(communicator.rank()), CudaMemoryPool.Kind.DEVICE, 8 << 20);
      return new Buffers(pool, pool.take(4 * ROWS), pool.take(4 * ROWS));
    }

    void close() {
      send.close();
      receive.close();
      pool.close();
    }
  }

  private static SharedWindow share(Communicator communicator, CudaMemory memory) {
    return ((DeviceCommunicator) communicator).share(memory);
  }

  private static TypedBuffer ints(CudaMemory memory) {
    return TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT32, ROWS);
  }

  private static void exchange(Communicator communicator, Buffers buffers) {
    int nranks = communicator.nranks();
    int rank = communicator.rank();
    RaggedLayout layout = RaggedContract.layout(rank, nranks, 1, 1, RaggedContract.MIXED);
    Values.fill(ints(buffers.send()), rank);
    Values.fill(ints(buffers.receive()), i -> -1);
    communicator.raggedAllToAll(ints(buffers.send()), ints(buffers.receive()), layout);
    for (int from = 0; from < nranks; from++) {
      RaggedLayout theirs = RaggedContract.layout(from, nranks, 1, 1, RaggedContract.MIXED);
      for (int row = 0; row < theirs.sendSize(rank); row++) {
        assertThat(Values.get(ints(buffers.receive()), theirs.targetOffset(rank) + row))
            .isEqualTo(Values.of(from, theirs.sendOffset(rank) + row));
      }
    }
  }

  /** Both forms in turn, for the numbers of ranks that NVLink connects. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 8})
  void sharedMemoryIsWrittenByDevicesAndOtherMemoryByNccl(int nranks) {
    try (RankGang gang = gang(nranks, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            SharedWindow window = share(communicator, buffers.receive());
            for (int round = 0; round < 10; round++) {
              exchange(communicator, buffers);
            }
            communicator.barrier();
            assertThat(ncclLaunches()).isZero();
            communicator.barrier();
            window.close();
            exchange(communicator, buffers);
            communicator.barrier();
            buffers.close();
          });
      assertThat(ncclLaunches()).isEqualTo(nranks == 1 ? 0 : nranks);
    }
  }

  /** If one rank receives elsewhere, all ranks use NCCL. */
  @Test
  void oneRankThatReceivesElsewhereMakesAllUseNccl() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            boolean isFirst = communicator.rank() == 0;
            try (SharedWindow window =
                share(communicator, isFirst ? buffers.receive() : buffers.send())) {
              assertThat(window.memory()).isSameAs(isFirst ? buffers.receive() : buffers.send());
              exchange(communicator, buffers);
            }
            buffers.close();
          });
      assertThat(ncclLaunches()).isEqualTo(2);
    }
  }

  @Test
  void windowKeepsItsMemory() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            SharedWindow window = share(communicator, buffers.receive());
            buffers.send().close();
            buffers.receive().close();
            assertThat(buffers.pool().takenBytes()).isPositive();
            window.close();
            window.close();
            assertThat(buffers.pool().takenBytes()).isZero();
            buffers.pool().close();
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
      if (breaks) {
        gang.rank(1).abort("for the test");
      }
    }
    windows.forEach(SharedWindow::close);
    buffers.forEach(Buffers::close);
    buffers.forEach(each -> assertThat(each.pool().takenBytes()).isZero());
  }

  /** Checks the refusal, and that the communicator stays usable. */
  private static void assertRefused(RankGang gang, CudaMemorySource first, String reason) {
    gang.run(
        communicator -> {
          CudaMemorySource source = communicator.rank() == 0 ? first : CudaMemoryPool.Kind.DEVICE;
          try (CudaMemoryPool pool =
                  CudaMemoryPool.open(GpuDoubles.device(communicator.rank()), source, 8 << 20);
              CudaMemory memory = pool.take(1000)) {
            CollectiveException failure =
                catchThrowableOfType(CollectiveException.class, () -> share(communicator, memory));
            assertThat(failure.kind()).isEqualTo(Kind.INVALID);
            assertThat(failure).hasMessageContaining(reason);
          }
          communicator.barrier();
        });
  }

  @Test
  void memoryThatCannotBeSharedIsRefusedOnAllRanks() {
    try (RankGang gang = gang(2, LONG)) {
      assertRefused(
          gang,
          VirtualMemory.of(GpuDoubles.device(0)),
          "rank 0 cannot share memory: virtual device memory cannot be exported");
    }
  }

  @Test
  void devicesWithoutAWayToEachOtherAreRefused() {
    DoubleLibraries.cudaControls().cudaDoubleUnreachable(1);
    try (RankGang gang = gang(2, LONG)) {
      assertRefused(
          gang,
          CudaMemoryPool.Kind.DEVICE,
          "cannot share memory: there is no path to the memory of");
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
      assertRefused(gang, CudaMemoryPool.Kind.DEVICE, "the 2 ranks must be at most 16 and on");
    }
  }

  /** The device waits only until the operation's timeout, and names the missing rank. */
  @Test
  void rankWhoseDeviceIsStuckIsNamed() throws Exception {
    try (RankGang gang = gang(3, Duration.ofSeconds(4))) {
      List<Buffers> buffers = gang.ask(Buffers::of);
      List<SharedWindow> windows =
          gang.ask(communicator -> share(communicator, buffers.get(communicator.rank()).receive()));
      gang.run(communicator -> exchange(communicator, buffers.get(communicator.rank())));
      DoubleLibraries.cudaControls().cudaDoubleHold(2);
      List<Future<CollectiveException>> failures =
          gang.askAsync(
              communicator ->
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> exchange(communicator, buffers.get(communicator.rank()))));
      CollectiveException failure = failures.get(0).get(30, TimeUnit.SECONDS);
      DoubleLibraries.cudaControls().cudaDoubleHold(-1);
      assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT);
      assertThat(failure.ranks()).containsExactly(2);
      assertThat(failure).hasMessageMatching(".*rank [01] waited on its device for rank 2.*");
      for (Future<CollectiveException> each : failures) {
        assertThat(each.get(30, TimeUnit.SECONDS)).isNotNull();
      }
      assertThatThrownBy(() -> exchange(gang.rank(1), buffers.get(1)))
          .isInstanceOf(CollectiveException.class);
      gang.run(communicator -> windows.get(communicator.rank()).close());
      buffers.forEach(Buffers::close);
      buffers.forEach(each -> assertThat(each.pool().takenBytes()).isZero());
    }
  }

  /**
   * An operation that fails ends after its device has become idle, or after ten seconds. Without
   * the abort, the device would wait for the stuck one for a minute.
   */
  @Test
  void abortEndsTheWaitOfTheDevices() throws Exception {
    DoubleLibraries.CudaControls controls = DoubleLibraries.cudaControls();
    List<Buffers> buffers;
    List<SharedWindow> windows;
    try (RankGang gang = gang(2, LONG)) {
      buffers = gang.ask(Buffers::of);
      windows =
          gang.ask(communicator -> share(communicator, buffers.get(communicator.rank()).receive()));
      controls.cudaDoubleHold(1);
      int before = controls.cudaDoubleRuns(0, "weft_peer_barrier");
      List<Future<CollectiveException>> failures =
          gang.askAsync(
              communicator ->
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> exchange(communicator, buffers.get(communicator.rank()))));
      await().until(() -> controls.cudaDoubleRuns(0, "weft_peer_barrier") > before);
      gang.rank(0).abort("for the test");
      CollectiveException failure = failures.get(0).get(8, TimeUnit.SECONDS);
      assertThat(failure).hasMessageContaining("for the test");
      controls.cudaDoubleHold(-1);
      assertThat(failures.get(1).get(20, TimeUnit.SECONDS)).isNotNull();
    } finally {
      controls.cudaDoubleHold(-1);
    }
    windows.forEach(SharedWindow::close);
    buffers.forEach(Buffers::close);
    buffers.forEach(each -> assertThat(each.pool().takenBytes()).isZero());
  }
}
