package io.weft.transfers.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.memory.Memory;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.shuffle.peer.TransportMode;
import io.weft.transfers.TestGpus;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Ranks that are GPUs connect if all of them have one, or all refuse for the same reason. */
class GpuRanksTest {
  private static final PathRules RULES = new PathRules(TransportMode.AUTO, true, false);

  private final List<GpuRanks> executors = new ArrayList<>();

  @BeforeAll
  static void needsDoubles() {
    TestGpus.assumeDoubles();
  }

  @AfterEach
  void nothingIsLeftBehind() {
    executors.forEach(GpuRanks::close);
    TestGpus.assertClean();
  }

  private static GpuEnd gpu(int ordinal) {
    String uuid = TestGpus.cuda().gpus().get(ordinal).uuid().toString();
    return GpuEnd.of(uuid, ordinal, "a GPU", "2.28.3");
  }

  private void addExecutor(GpuEnd gpu, String kernel) {
    executors.add(
        new GpuRanks(
            new GpuRanks.Options(
                executors.size() + "@life",
                new PathEnd(kernel, gpu),
                RULES,
                TestGpus.options(),
                8 << 20,
                LocalCommunicator::create)));
  }

  /** Runs an action of all ranks. */
  private <T> List<CompletableFuture<T>> run(Function<GpuCommunicator, T> action) {
    List<Bootstrap> bootstraps = ThreadBootstrap.open(executors.size());
    List<CompletableFuture<T>> running = new ArrayList<>();
    for (Bootstrap bootstrap : bootstraps) {
      GpuRanks executor = executors.get(bootstrap.rank());
      running.add(
          CompletableFuture.supplyAsync(
              () -> {
                try (GpuCommunicator communicator =
                    executor.create(bootstrap, CommunicatorOptions.DEFAULT)) {
                  return action.apply(communicator);
                }
              },
              task -> new Thread(task).start()));
    }
    return running;
  }

  private void assertRefused(List<Integer> ranks, String... texts) throws Exception {
    for (CompletableFuture<String> rank : run(communicator -> "connected")) {
      try {
        assertThat(rank.get(60, TimeUnit.SECONDS)).isNull();
      } catch (ExecutionException e) {
        CollectiveException refusal = (CollectiveException) e.getCause();
        assertThat(refusal).hasMessageContainingAll(texts);
        assertThat(refusal.kind()).isEqualTo(Kind.INVALID);
        assertThat(refusal.ranks()).isEqualTo(ranks);
      }
    }
  }

  private static long sum(GpuCommunicator communicator) {
    TypedBuffer host = TypedBuffer.wrap(ByteBuffer.allocateDirect(8), DataType.INT64);
    Memory.putLong(host.address(), communicator.rank() + 1L);
    GpuBuffer buffer = communicator.onDevice(DataType.INT64, 1);
    buffer.write(host, 0);
    communicator.allReduce(buffer.elements(), ReduceOp.SUM);
    buffer.read(host, 0);
    return Memory.getLong(host.address());
  }

  @Test
  void memoryIsKeptForLaterRanksUntilItIsIdle() throws Exception {
    for (int ordinal = 0; ordinal < 3; ordinal++) {
      addExecutor(gpu(ordinal), "a kernel");
    }
    assertThat(executors.get(0).statistics().freshBytes()).isZero();
    for (int stage = 0; stage < 2; stage++) {
      for (CompletableFuture<Long> rank : run(GpuRanksTest::sum)) {
        assertThat(rank.get(60, TimeUnit.SECONDS)).isEqualTo(6);
      }
    }
    GpuRanks first = executors.get(0);
    assertThat(first.statistics().freshBytes()).isEqualTo(2 << 20);
    assertThat(first.statistics().reusedBytes()).isEqualTo(2 << 20);
    await()
        .untilAsserted(
            () -> {
              first.freeIdle(Duration.ZERO);
              assertThat(first.statistics().idleBytes()).isZero();
            });
  }

  /** The driver may wait for running work, and the task's thread must not wait for the driver. */
  @Test
  void theDriverAllocatesOnTheThreadOfTheCommunicator() throws Exception {
    addExecutor(gpu(0), "a kernel");
    List<CompletableFuture<Long>> ranks =
        run(
            communicator -> {
              TestGpus.controls().cudaDoubleStall(1);
              return sum(communicator);
            });
    try {
      await().untilAsserted(() -> assertThat(threadsOf("DeviceArena")).isNotEmpty());
      assertThat(threadsOf("DeviceArena")).allMatch(name -> name.startsWith("weft-lane-"));
    } finally {
      TestGpus.controls().cudaDoubleStall(0);
    }
    assertThat(ranks.get(0).get(60, TimeUnit.SECONDS)).isEqualTo(1);
  }

  private static List<String> threadsOf(String calledClass) {
    return Thread.getAllStackTraces().entrySet().stream()
        .filter(
            each ->
                Arrays.stream(each.getValue())
                    .anyMatch(frame -> frame.getClassName().endsWith("." + calledClass)))
        .map(each -> each.getKey().getName())
        .toList();
  }

  @Test
  void ranksWithoutGpuAreNamed() throws Exception {
    addExecutor(gpu(0), "a kernel");
    addExecutor(GpuEnd.without("no driver"), "a kernel");
    addExecutor(gpu(1), "a kernel");
    assertRefused(List.of(1), "rank 1 has none: executor 1@life has no GPU for arrays: no driver");
  }

  @Test
  void ranksThatNcclDoesNotConnectAreNamed() throws Exception {
    addExecutor(gpu(0), "a kernel");
    addExecutor(gpu(1), "a kernel");
    addExecutor(gpu(0), "a kernel");
    assertRefused(
        List.of(0, 2), "rank 0 on executor 0@life and rank 2", "NCCL takes one rank for each GPU");
  }

  @Test
  void encryptedNetworksAreRefused() throws Exception {
    addExecutor(gpu(0), "a kernel");
    addExecutor(gpu(1), "another kernel");
    assertRefused(List.of(0, 1), "Spark encrypts its network and NCCL does not");
  }

  @Test
  void aGpuThatDoesNotOpenIsNamed() throws Exception {
    addExecutor(gpu(0), "a kernel");
    addExecutor(GpuEnd.of(UUID.randomUUID().toString(), 1, "lost", "2.28.3"), "a kernel");
    assertRefused(List.of(1), "rank 1 cannot open GPU 1 (lost", "of executor 1@life");
  }
}
