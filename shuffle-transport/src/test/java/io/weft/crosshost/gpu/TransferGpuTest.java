package io.weft.crosshost.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.crosshost.GpuResources;
import io.weft.crosshost.TestGpus;
import io.weft.crosshost.buffer.TransferBuffer;
import io.weft.peer.GpuEnd;
import io.weft.peer.PathEnd;
import io.weft.peer.PathRules;
import io.weft.peer.TransportMode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The GPU is opened when it is used, and what is made of it is what the rules say. */
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
                1 << 20,
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
    List<Bootstrap> meeting = ThreadBootstrap.open(2);
    List<CompletableFuture<Communicator>> made = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      GpuResources end = gpu(rank, mode).resources(hosts);
      Bootstrap bootstrap = meeting.get(rank);
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
              throw new IllegalStateException("what goes around NCCL is not needed");
            });
    assertThat(pair)
        .allSatisfy(each -> assertThat(each.getClass().getSimpleName()).startsWith("Nccl"));
    pair.forEach(Communicator::close);
  }

  @Test
  void theyMeetThroughTheHostWhereNcclIsNotWanted() throws Exception {
    List<Communicator> pair = pair(TransportMode.SHM, LocalCommunicator::create);
    assertThat(pair).allSatisfy(each -> assertThat(each).isInstanceOf(HostRoute.class));
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
    assertThatThrownBy(() -> resources.memory().take(2 << 20))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("exceed the budget");
    gpu.close();
    assertThatThrownBy(() -> resources.memory().take(1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("was closed");
  }
}
