package io.weft.spark.gpu;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.IpcSegment;
import io.weft.device.cuda.NoRoomException;
import io.weft.device.probe.ProbeOptions;
import io.weft.memory.Memory;
import io.weft.shuffle.device.DeviceBlock;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.spark.sql.WeftGpu;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Encoders;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The GPU of an executor while it is being opened, is full, or fails. */
class ExecutorGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final int MIB = 1 << 20;
  private static final int SIZE = 6 * MIB;

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark =
        DoubleGpus.start(
            Map.of(
                "spark.weft.route", "auto",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false",
                "spark.weft.gpu.exchangeMemory", "32m"));
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  /** The monitor is held while a GPU is opened; event loops and readers must not wait for it. */
  @Test
  void requestsAreAnsweredWhileAGpuIsOpened() throws Exception {
    ExecutorGpu gpu = ExecutorGpu.current();
    DeviceExchange exchange = gpu.exchange();
    BlockKey key = new BlockKey(77_777, 1);
    synchronized (gpu) {
      CompletableFuture<Void> others =
          CompletableFuture.runAsync(
              () -> {
                assertThat(gpu.openExchange()).containsSame(exchange);
                assertThat(gpu.exchange()).isSameAs(exchange);
                gpu.removeShuffle(key.shuffleId());
                try {
                  assertThat(gpu.hostReads().held("driver", List.of(key))).isEmpty();
                } catch (IOException | InterruptedException e) {
                  throw new IllegalStateException(e);
                }
              });
      others.get(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
    }
  }

  @Test
  void aFailedOpenIsNotRetriedByEachTask(@TempDir Path nothing) {
    ProbeOptions nowhere =
        ProbeOptions.defaults().withRoot(nothing).withNcclLibrary(nothing.resolve("libnccl.so.2"));
    GpuEnd end = GpuEnd.of(UUID.randomUUID().toString(), 0, "A double", "2.28.3");
    try (ExecutorGpu gpu =
        new ExecutorGpu(new ExecutorGpu.Options("7", end, nowhere, null, MIB, MIB, MIB, TIMEOUT))) {
      IllegalStateException first =
          catchThrowableOfType(IllegalStateException.class, gpu::exchange);
      assertThat(first).hasMessageContaining("executor 7 cannot use GPU 0 (A double");
      assertThatThrownBy(gpu::exchange).hasMessage(first.getMessage()).cause().isSameAs(first);
      assertThatThrownBy(gpu::open).hasMessage(first.getMessage()).cause().isSameAs(first);
      assertThat(gpu.exchangeObstacle()).isEqualTo(first.getMessage());
    }
  }

  /** The transfers are closed after the exchange, and end the loans of its memory. */
  @Test
  void memoryThatTheTransfersReturnDoesNotKeepTheContext() {
    ProbeOptions libraries =
        ProbeOptions.defaults().withNcclLibrary(DoubleGpus.library("libnccl.so.2"));
    CudaDevice used = ExecutorGpu.current().open().device();
    String uuid = used.description().uuid().toString();
    ExecutorGpu gpu =
        new ExecutorGpu(
            new ExecutorGpu.Options(
                "8",
                GpuEnd.of(uuid, 0, "A double", "2.28.3"),
                libraries,
                WeftExecutor.exchange(),
                MIB,
                32 * MIB,
                4 * MIB,
                TIMEOUT));
    DeviceExchange exchange = gpu.exchange();
    CudaDevice device = exchange.gpu().device();
    CudaMemoryPool memory = exchange.tiers().memory();
    IpcSegment loan;
    try (CudaMemory lent = exchange.take(SIZE, () -> {})) {
      loan = IpcSegment.around(lent.address(), SIZE).orElseThrow();
    }
    gpu.closeExchange();
    assertThat(gpu.openExchange()).isEmpty();
    assertThatThrownBy(gpu::exchange).hasMessageContaining("executor 8 ends");
    assertThat(memory.lentBytes()).isPositive();
    loan.close();
    assertThat(memory.reservedBytes()).isZero();
    gpu.close();
    assertThatThrownBy(device::use).hasMessageContaining("closed");
  }

  /** A failure other than a lack of room is not retried, and nothing is spilled for it. */
  @Test
  void onlyALackOfRoomIsRetried() {
    DeviceExchange device = ExecutorGpu.current().exchange();
    AtomicInteger tries = new AtomicInteger();
    assertThatThrownBy(
            () ->
                device.withRoom(
                    1,
                    () -> {},
                    () -> {
                      tries.incrementAndGet();
                      throw new IllegalStateException("memory was closed");
                    }))
        .hasMessage("memory was closed");
    assertThat(tries).hasValue(1);
    long budget = device.tiers().memory().budgetBytes();
    CudaMemory all = device.take(budget, () -> {});
    try (all) {
      assertThatThrownBy(() -> device.tiers().memory().take(1)).isInstanceOf(NoRoomException.class);
      CudaMemory later =
          device.take(
              MIB,
              () -> {
                tries.incrementAndGet();
                all.close();
              });
      later.close();
      assertThat(tries).hasValue(2);
    }
  }

  /** Happens if a task reads while Spark removes its shuffle. */
  @Test
  void aMissingOwnBlockIsNotALackOfRoom() throws Exception {
    DeviceExchange device = ExecutorGpu.current().exchange();
    List<BlockKey> before = device.catalog().keys();
    assertThat(
            WeftGpu.onDevice(spark.session().range(1000).toDF())
                .repartition(3, col("id"))
                .collectAsList())
        .hasSize(1000);
    BlockKey key =
        device.catalog().keys().stream()
            .filter(each -> !before.contains(each))
            .findFirst()
            .orElseThrow();
    TableFetch own =
        TableFetch.of(
                device,
                true,
                "driver",
                List.of(new DeviceBlock(key, 0, 1)),
                () -> {},
                new FetchAhead(0))
            .get(0);
    assertThat(own.hasNext()).isTrue();
    device.catalog().removeShuffle(key.shuffleId());
    assertThatThrownBy(own::next).isInstanceOf(DeviceFetchException.class);
    assertThatThrownBy(own::next).as("again").isInstanceOf(DeviceFetchException.class);
  }

  @Test
  void tasksThatUseTheDeviceAreAdmitted() {
    MapPartitionsFunction<Long, Integer> turns =
        rows -> {
          rows.forEachRemaining(row -> {});
          return List.of(ExecutorGpu.current().exchange().tasks()).iterator();
        };
    List<Integer> found =
        WeftGpu.onDevice(spark.session().range(1000).toDF())
            .repartition(3, col("id"))
            .as(Encoders.LONG())
            .mapPartitions(turns, Encoders.INT())
            .collectAsList();
    assertThat(found).isNotEmpty().allMatch(tasks -> tasks > 0);
    await().atMost(TIMEOUT).until(() -> ExecutorGpu.current().exchange().tasks() == 0);
  }

  /** One copy that exceeds its timeout does not end the use of the GPU. */
  @Test
  void downloadsResumeWhenTheDeviceIsIdle() {
    DeviceExchange device = ExecutorGpu.current().exchange();
    long to = Memory.allocate(SIZE);
    try (CudaMemoryPool pinned = pool(device, 16 * MIB);
        CudaMemory from = device.take(SIZE, () -> {});
        DeviceDownloads downloads =
            new DeviceDownloads(device.gpu().device(), pinned, Duration.ofMillis(100))) {
      DoubleGpus.controls().cudaDoublePause(1);
      Event late = copy(downloads, to, from);
      try {
        await().atMost(TIMEOUT).until(() -> downloads.obstacle().isPresent());
        assertThat(downloads.obstacle().orElseThrow())
            .contains("copies from the GPU to the host have failed")
            .contains("did not end within");
      } finally {
        DoubleGpus.controls().cudaDoublePause(0);
      }
      assertThatThrownBy(() -> late.await(Deadline.after(TIMEOUT)))
          .isInstanceOf(EventFailedException.class);
      await().atMost(TIMEOUT).until(() -> downloads.obstacle().isEmpty());
      Memory.setMemory(from.address(), SIZE, (byte) 7);
      copy(downloads, to, from).await(Deadline.after(TIMEOUT));
      assertThat(Memory.getByte(to + SIZE - 1)).isEqualTo((byte) 7);
    } finally {
      Memory.free(to);
    }
  }

  private static CudaMemoryPool pool(DeviceExchange device, long bytes) {
    return CudaMemoryPool.open(device.gpu().device(), CudaMemoryPool.Kind.PINNED, bytes);
  }

  private static Event copy(DeviceDownloads downloads, long to, CudaMemory from) {
    return downloads.copy("a test", to, from.address(), SIZE, HostEvent.completed("nothing"));
  }

  /** The allocation of the second of the two buffers fails. */
  @Test
  void downloadsResumeWhenPinnedMemoryIsFree() {
    DeviceExchange device = ExecutorGpu.current().exchange();
    long to = Memory.allocate(SIZE);
    try (CudaMemoryPool pinned = pool(device, 8 * MIB);
        CudaMemory from = device.take(SIZE, () -> {});
        DeviceDownloads downloads = new DeviceDownloads(device.gpu().device(), pinned, TIMEOUT)) {
      try (CudaMemory others = pinned.take(4 * MIB)) {
        assertThat(others.bytes()).isEqualTo(4 * MIB);
        assertThatThrownBy(() -> copy(downloads, to, from).await(Deadline.after(TIMEOUT)))
            .hasStackTraceContaining("exceed the budget");
      }
      assertThat(downloads.obstacle()).isEmpty();
      Memory.setMemory(from.address(), SIZE, (byte) 9);
      copy(downloads, to, from).await(Deadline.after(TIMEOUT));
      assertThat(Memory.getByte(to + SIZE - 1)).isEqualTo((byte) 9);
    } finally {
      Memory.free(to);
    }
  }

  @Test
  void tooLargeTablesAreRejectedWithTheReason() {
    TablePacker.requireKeepable(Integer.MAX_VALUE - 63L);
    assertThatThrownBy(() -> TablePacker.requireKeepable(1L << 32))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("a table of 4.0 GiB cannot be exchanged")
        .hasMessageContaining("has to make smaller ones");
  }
}
