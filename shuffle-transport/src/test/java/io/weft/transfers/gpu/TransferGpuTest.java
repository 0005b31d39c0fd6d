package io.weft.transfers.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.collectives.nccl.DeviceCommunicator;
import io.weft.device.UnavailableLibraryException;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.shuffle.peer.TransportMode;
import io.weft.transfers.DeviceTransfers.GpuResources;
import io.weft.transfers.Manifest;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.ReceiveMemory.BufferStatistics;
import io.weft.transfers.TestGpus;
import io.weft.transfers.TransferBuffer;
import io.weft.transfers.TransferWire;
import io.weft.transfers.gpu.TransferGpu.HostPathCommunicator;
import io.weft.transfers.gpu.TransferGpu.NcclWire;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The GPU is opened on first use, and the path follows the rules. */
class TransferGpuTest {
  private final List<TransferGpu> gpus = new ArrayList<>();

  @BeforeAll
  static void needsDoubles() {
    TestGpus.assumeDoubles();
  }

  private TransferGpu gpu(int ordinal, TransportMode mode) {
    String uuid = TestGpus.cuda().gpus().get(ordinal).uuid().toString();
    TransferGpu gpu =
        new TransferGpu(
            new TransferGpu.Options(
                ordinal + "@life",
                new PathEnd("a kernel", GpuEnd.of(uuid, ordinal, "a GPU", "2.28.3")),
                new PathRules(mode, false, false),
                TestGpus.options(),
                2 << 20,
                true,
                LocalCommunicator::create));
    gpus.add(gpu);
    return gpu;
  }

  @AfterEach
  void nothingIsLeftBehind() {
    gpus.forEach(TransferGpu::close);
    TestGpus.assertClean();
  }

  private List<Communicator> pair(TransportMode mode, CommunicatorFactory hosts) throws Exception {
    List<Bootstrap> bootstraps = ThreadBootstrap.open(2);
    List<CompletableFuture<Communicator>> made = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      GpuResources end = gpu(rank, mode).resources(hosts);
      Bootstrap bootstrap = bootstraps.get(rank);
      made.add(
          CompletableFuture.supplyAsync(
              () -> end.communicators().create(bootstrap, CommunicatorOptions.DEFAULT)));
    }
    List<Communicator> pair = new ArrayList<>();
    for (CompletableFuture<Communicator> each : made) {
      pair.add(each.get(60, TimeUnit.SECONDS));
    }
    return pair;
  }

  @Test
  void twoGpusMeetInNccl() throws Exception {
    List<Communicator> pair =
        pair(
            TransportMode.AUTO,
            (bootstrap, options) -> {
              throw new IllegalStateException("the hosts' path is not needed");
            });
    assertThat(pair)
        .allSatisfy(each -> assertThat(each.getClass().getSimpleName()).startsWith("Nccl"));
    pair.forEach(Communicator::close);
  }

  /** One communicator of NCCL at each end, whose kernels leave places for other transfers. */
  @Test
  void aPairTakesLittleOfNcclAndOfTheGpus() throws Exception {
    List<Communicator> pair = pair(TransportMode.AUTO, LocalCommunicator::create);
    assertThat(TestGpus.live()).contains("nccl communicators: 2\n");
    assertThat(TestGpus.ncclControls().ncclDoubleMaxBlocks()).isEqualTo(16);
    assertThatThrownBy(() -> pair.get(0).barrier())
        .hasMessageContaining("is for sends and receives only");
    assertThat(pair.get(0).failure()).isEmpty();
    pair.forEach(Communicator::close);
  }

  /** A manifest needs no work of the GPUs. */
  @Test
  void manifestsTravelOverTheHosts() throws Exception {
    List<Communicator> pair = pair(TransportMode.AUTO, LocalCommunicator::create);
    int unused = TestGpus.ncclControls().ncclDoubleLaunches();
    List<CompletableFuture<List<ManifestEntry>>> offers = new ArrayList<>();
    for (Communicator end : pair) {
      TransferWire wire = new NcclWire((DeviceCommunicator) end, true);
      Manifest mine = new Manifest();
      offers.add(CompletableFuture.supplyAsync(() -> wire.exchange(mine)));
    }
    for (CompletableFuture<List<ManifestEntry>> each : offers) {
      assertThat(each.get(60, TimeUnit.SECONDS)).isEmpty();
    }
    assertThat(TestGpus.ncclControls().ncclDoubleLaunches()).isZero();
    pair.forEach(Communicator::close);
  }

  @Test
  void theyMeetThroughTheHostWhereNcclIsNotWanted() throws Exception {
    List<Communicator> pair = pair(TransportMode.SHM, LocalCommunicator::create);
    assertThat(pair).allSatisfy(each -> assertThat(each).isInstanceOf(HostPathCommunicator.class));
    pair.forEach(Communicator::close);
  }

  @Test
  void aGpuThatIsNotUsedIsNotOpened() {
    GpuResources resources = gpu(0, TransportMode.AUTO).resources(LocalCommunicator::create);
    assertThat(resources.memory().statistics().taken()).isZero();
    TestGpus.assertClean();
  }

  @Test
  void itsMemoryIsReusedAndHasALimit() throws Exception {
    TransferGpu gpu = gpu(0, TransportMode.AUTO);
    GpuResources resources = gpu.resources(LocalCommunicator::create);
    long address;
    try (TransferBuffer buffer = resources.memory().take(1000)) {
      TypedBuffer array = TypedBuffer.of(buffer, 0, DataType.INT8, 1000);
      address = array.address();
      assertThat(resources.memory().statistics().out()).isEqualTo(1);
    }
    try (TransferBuffer again = resources.memory().take(1001)) {
      assertThat(again.address()).isEqualTo(address);
    }
    assertThat(resources.memory().statistics().reused()).isEqualTo(1);
    assertThatThrownBy(() -> resources.memory().take(3 << 20))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("exceed the budget");
    gpu.close();
    assertThatThrownBy(() -> resources.memory().take(1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("was closed");
  }

  private static void awaitStalled() {
    await().until(() -> TestGpus.controls().cudaDoubleStalled() > 0);
  }

  /** A driver that does not answer delays only threads that need it. */
  @Test
  void onlyUsersWaitWhileTheDriverOpensTheGpu() throws Exception {
    TransferGpu gpu = gpu(0, TransportMode.AUTO);
    GpuResources resources = gpu.resources(LocalCommunicator::create);
    TestGpus.controls().cudaDoubleStall(1);
    try {
      CompletableFuture<TransferBuffer> taking =
          CompletableFuture.supplyAsync(() -> take(resources));
      awaitStalled();
      CompletableFuture<Void> others =
          CompletableFuture.runAsync(
              () -> {
                assertThat(resources.memory().statistics().taken()).isZero();
                gpu.close();
              });
      others.get(20, TimeUnit.SECONDS);
      assertThat(taking).isNotDone();
      TestGpus.controls().cudaDoubleStall(0);
      assertThatThrownBy(() -> taking.get(20, TimeUnit.SECONDS)).hasMessageContaining("was closed");
    } finally {
      TestGpus.controls().cudaDoubleStall(0);
    }
  }

  private static TransferBuffer take(GpuResources resources) {
    try {
      return resources.memory().take(1000);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void onlyTheCallerWaitsWhileTheDriverAllocates() throws Exception {
    GpuResources resources = gpu(0, TransportMode.AUTO).resources(LocalCommunicator::create);
    assertThat(resources.memory().obstacle(TypedBuffer.at(8, DataType.INT8, 1))).isPresent();
    TestGpus.controls().cudaDoubleStall(1);
    try {
      CompletableFuture<TransferBuffer> taking =
          CompletableFuture.supplyAsync(() -> take(resources));
      awaitStalled();
      CompletableFuture<BufferStatistics> others =
          CompletableFuture.supplyAsync(() -> resources.memory().statistics());
      assertThat(others.get(20, TimeUnit.SECONDS).taken()).isZero();
      assertThat(taking).isNotDone();
      TestGpus.controls().cudaDoubleStall(0);
      taking.get(20, TimeUnit.SECONDS).close();
      assertThat(resources.memory().statistics().allocated()).isOne();
    } finally {
      TestGpus.controls().cudaDoubleStall(0);
    }
  }

  /** The next caller retries after a failure. */
  @Test
  void aDriverThatDoesNotAnswerIsAnErrorThatSaysSo() {
    List<String> calls = new CopyOnWriteArrayList<>();
    CountDownLatch answer = new CountDownLatch(1);
    try (GpuOpener<Object> opening =
        new GpuOpener<>(
            "cuda:7",
            () -> {
              calls.add("call");
              try {
                answer.await(30, TimeUnit.SECONDS);
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
              throw new IllegalArgumentException("no such GPU");
            },
            opened -> calls.add("close"),
            Duration.ofMillis(20))) {
      assertThatThrownBy(opening::get)
          .isInstanceOf(UnavailableLibraryException.class)
          .hasMessage("the NVIDIA driver did not open cuda:7 within 20 ms");
      assertThatThrownBy(() -> opening.get(Duration.ofMillis(3)))
          .hasMessage("the NVIDIA driver did not open cuda:7 within 3 ms");
      answer.countDown();
      await()
          .untilAsserted(
              () -> {
                assertThatThrownBy(opening::get)
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("no such GPU");
                assertThat(calls).hasSizeGreaterThan(1);
              });
    }
  }
}
