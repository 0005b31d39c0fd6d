package io.weft.transfers;

import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.DeviceTiers;
import io.weft.device.cuda.TieredMemory;
import io.weft.shuffle.device.BlockFetches.BlockFetch;
import io.weft.shuffle.device.ColumnKind;
import io.weft.shuffle.device.DeviceBlock;
import io.weft.shuffle.device.DeviceBlockClient;
import io.weft.shuffle.device.DeviceBlockServer;
import io.weft.shuffle.device.DeviceCatalog;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.shuffle.store.BlockKey;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How long the blocks of a GPU stay where a wire reads them. */
class DeviceBlockLeasesTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final BlockKey KEY = new BlockKey(4, 9);
  private static final TableLayout LAYOUT =
      TableLayout.fixed(List.of(TableColumn.of(ColumnKind.LONG, false)), 1000);

  /** More than half of the receive memory. */
  private static final TableLayout LARGE =
      TableLayout.fixed(
          List.of(TableColumn.of(ColumnKind.LONG, false)), (int) (Executors.GPU_BYTES / 13));

  private static final List<DeviceBlock> BLOCKS = List.of(new DeviceBlock(KEY, 0, LAYOUT.bytes()));

  @TempDir Path folder;

  private static HostCommunicators hosts(Path folder, String executor) {
    return new HostCommunicators(HostOptions.defaults().withFolder(folder.resolve("shared")));
  }

  /** The event fails while the GPU still copies. A spill would reuse memory that is let go. */
  @Test
  void aBlockStaysWhileTheWireReadsItAlsoAfterItsTransferHasFailed() throws Exception {
    TestGpus.assumeDoubles();
    CudaDevice gpu = TestGpus.cuda().open(0);
    DeviceCatalog catalog = new DeviceCatalog();
    try (Executors executors =
        new Executors(folder, DeviceBlockLeasesTest::hosts, TransferOptions.DEFAULT)
            .gpus(GpuPath.STAGED)
            .start(2)) {
      DeviceTiers tiers =
          DeviceTiers.open(gpu, "test", 64 << 20, 8 << 20, executors.arena(0), TIMEOUT);
      publish(catalog, tiers);
      try (DeviceBlockServer server =
              new DeviceBlockServer(catalog, executors.get(0), device(0), TIMEOUT);
          DeviceBlockClient client =
              new DeviceBlockClient(
                  new DeviceCatalog(),
                  (executor, request) -> answer(server, request),
                  executors.get(1),
                  device(1),
                  TIMEOUT)) {
        close(client.fetch("0", BLOCKS, () -> {}));
        int unused = TestGpus.controls().cudaDoubleHostCopies();
        TestGpus.controls().cudaDoublePause(1);
        CompletableFuture<List<List<DeviceRows>>> fetched =
            CompletableFuture.supplyAsync(() -> fetch(client));
        await().atMost(TIMEOUT).until(() -> TestGpus.controls().cudaDoubleHostCopies() > 0);
        executors.get(0).withdraw("the deadline has passed");
        catalog.removeShuffle(KEY.shuffleId());
        assertThat(tiers.memory().takenBytes()).isPositive();
        TestGpus.controls().cudaDoublePause(0);
        close(fetched.join());
        await().atMost(TIMEOUT).until(() -> tiers.memory().takenBytes() == 0);
      } finally {
        TestGpus.controls().cudaDoublePause(0);
        tiers.close();
      }
    }
    gpu.close();
    TestGpus.assertClean();
  }

  /** The group ahead has come and waits for its task. Two groups do not fit. */
  @Test
  void anIdleGroupAheadGivesWayToAFetchThatNeedsItsMemory() throws Exception {
    TestGpus.assumeDoubles();
    CudaDevice gpu = TestGpus.cuda().open(0);
    DeviceCatalog catalog = new DeviceCatalog();
    try (Executors executors =
        new Executors(folder, DeviceBlockLeasesTest::hosts, TransferOptions.DEFAULT)
            .gpus(GpuPath.IPC)
            .start(2)) {
      DeviceTiers tiers =
          DeviceTiers.open(gpu, "test", 2 * LARGE.bytes(), 8 << 20, executors.arena(0), TIMEOUT);
      publish(catalog, tiers, LARGE);
      try (DeviceBlockServer server =
              new DeviceBlockServer(catalog, executors.get(0), device(0), TIMEOUT);
          DeviceBlockClient client =
              new DeviceBlockClient(
                  new DeviceCatalog(),
                  (executor, request) -> answer(server, request),
                  executors.get(1),
                  device(1),
                  TIMEOUT)) {
        BlockFetch ahead = client.start("0", BLOCKS, true);
        await().atMost(TIMEOUT).until(() -> ahead.bytes() == LARGE.bytes());
        assertThatThrownBy(() -> client.fetch("0", BLOCKS, () -> {}))
            .isInstanceOfSatisfying(
                DeviceFetchException.class, e -> assertThat(e.isShortOfMemory()).isTrue());
        assertThat(client.makeRoom(() -> {})).isTrue();
        close(client.fetch("0", BLOCKS, () -> {}));
        assertThat(ahead.claim()).isFalse();

        try (BlockFetch again = client.start("0", BLOCKS, true)) {
          assertThat(again.claim()).isTrue();
          assertThat(client.makeRoom(() -> {})).as("a claimed group stays").isFalse();
          close(again.await(() -> {}));
        }
        catalog.removeShuffle(KEY.shuffleId());
        await().atMost(TIMEOUT).until(() -> tiers.memory().takenBytes() == 0);
      } finally {
        tiers.close();
      }
    }
    gpu.close();
    TestGpus.assertClean();
  }

  private static void publish(DeviceCatalog catalog, DeviceTiers tiers) throws IOException {
    publish(catalog, tiers, LAYOUT);
  }

  private static void publish(DeviceCatalog catalog, DeviceTiers tiers, TableLayout layout)
      throws IOException {
    TieredMemory memory = tiers.allocate(layout.bytes());
    catalog.publish(
        new DeviceOutput(
            KEY, List.of(new DeviceOutput.Unit(memory, List.of(layout), new long[] {0}))));
  }

  private static byte[] answer(DeviceBlockServer server, byte[] request)
      throws IOException, InterruptedException {
    try {
      return server.answer(request).get();
    } catch (ExecutionException e) {
      throw new IOException(e);
    }
  }

  private static List<List<DeviceRows>> fetch(DeviceBlockClient client) {
    try {
      return client.fetch("0", BLOCKS, () -> {});
    } catch (DeviceFetchException e) {
      throw new CompletionException(e);
    }
  }

  private static void close(List<List<DeviceRows>> rows) {
    rows.forEach(each -> each.forEach(DeviceRows::close));
  }
}
