package io.weft.transfers;

import static io.weft.transfers.Content.check;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.nccl.DeviceCommunicator;
import io.weft.collectives.nccl.NcclCommunicators;
import io.weft.collectives.nccl.NcclOptions;
import io.weft.device.cuda.CudaDevice;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two ranks of NCCL, on two GPUs or on one where NCCL lets them, after one of them has ended. */
class ShrunkRanksTest {
  private static final int COUNT = 100_000;
  private static final CommunicatorOptions OPTIONS =
      CommunicatorOptions.DEFAULT.withTimeout(Duration.ofSeconds(60));

  @TempDir Path folder;

  private final GpuArrays arrays = new GpuArrays();

  @BeforeAll
  static void needsNcclForTwo() {
    TestGpus.assume(GpuPath.NCCL);
  }

  @AfterEach
  void nothingIsLeftBehind() {
    arrays.close();
    TestGpus.assertClean();
  }

  private NcclCommunicators factory(CudaDevice device) {
    return new NcclCommunicators(
        TestGpus.options(),
        NcclOptions.on(device).withLinger(Duration.ofMillis(500)).withShrinking(),
        new HostCommunicators(HostOptions.defaults().withFolder(folder)));
  }

  /** The communicator is revoked, if NCCL can, and shrunk. The result must work in both cases. */
  @Test
  void rankThatIsLeftGoesOn() {
    try (CudaDevice first = TestGpus.cuda().open(TestGpus.ordinal(0));
        CudaDevice second = TestGpus.cuda().open(TestGpus.ordinal(1))) {
      List<CudaDevice> devices = List.of(first, second);
      List<Bootstrap> ends = ThreadBootstrap.open(2);
      List<DeviceCommunicator> both =
          IntStream.range(0, 2)
              .mapToObj(
                  rank ->
                      CompletableFuture.supplyAsync(
                          () -> factory(devices.get(rank)).create(ends.get(rank), OPTIONS)))
              .toList()
              .stream()
              .map(CompletableFuture::join)
              .toList();
      both.get(1).close();
      TypedBuffer from = arrays.copy(0, Content.ints(COUNT, 1));
      TypedBuffer to = arrays.copy(0, Content.ints(COUNT, 2));
      try (Bootstrap alone = ThreadBootstrap.open(1).get(0);
          Communicator rest = factory(first).shrink(both.get(0), alone, OPTIONS)) {
        assertThat(rest.nranks()).isEqualTo(1);
        rest.allReduce(from, to, ReduceOp.SUM);
      }
      both.get(0).close();
      ends.forEach(Bootstrap::close);
      check(arrays.toHost(to), 1);
    }
  }
}
