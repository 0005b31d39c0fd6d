package io.weft.spark.gpu;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.MemoryTier;
import io.weft.shuffle.device.DeviceBlock;
import io.weft.shuffle.device.DeviceCatalog;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.device.HostReadClient;
import io.weft.shuffle.device.HostReadServer;
import io.weft.shuffle.device.TableLayout;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.WeftTensors;
import io.weft.spark.gpu.TableFetch.HostTables;
import io.weft.spark.gpu.TableFetch.LocalTables;
import io.weft.spark.sql.WeftGpu;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Blocks of a GPU that are read through the host, as an executor without a GPU reads them. */
class HostReadsTest {
  private static final int PARTITIONS = 3;
  private static final String OWNER = "driver";
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private static LocalSpark spark;
  private static StructType schema;
  private static Dataset<Row> kept;

  @BeforeAll
  static void start() {
    spark =
        DoubleGpus.start(
            Map.of(
                "spark.weft.route", "auto",
                "spark.weft.gpu.exchangeMemory", "64m",
                "spark.weft.gpu.pinnedMemory", "8m",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false"));
    Dataset<Row> rows =
        spark
            .session()
            .range(0, 120_000, 1, 2)
            .selectExpr(
                "id",
                "if(id % 7 = 0, null, concat('text ', id)) s",
                "id % 2 = 0 b",
                "if(id % 5 = 0, null, array(id, -id)) x")
            .select(col("id"), col("s"), col("b"), WeftTensors.column("x", DataType.INT64, 2));
    schema = rows.schema();
    kept = WeftGpu.onDevice(rows).repartition(PARTITIONS, col("id"));
    assertThat(kept.collectAsList()).hasSize(120_000);
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      kept = null;
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  private static List<DeviceBlock> blocks() {
    List<DeviceBlock> blocks = new ArrayList<>();
    for (BlockKey key : ExecutorGpu.current().exchange().catalog().keys()) {
      for (int partition = 0; partition < PARTITIONS; partition++) {
        blocks.add(new DeviceBlock(key, partition, 1));
      }
    }
    return blocks;
  }

  private static List<String> rows(List<TableFetch> fetches) throws DeviceFetchException {
    List<String> rows = new ArrayList<>();
    for (TableFetch fetch : fetches) {
      while (fetch.hasNext()) {
        try (FetchedTable table = fetch.next()) {
          ColumnarBatch batch = table.batch(schema);
          batch
              .rowIterator()
              .forEachRemaining(
                  row ->
                      rows.add(
                          row.getLong(0)
                              + (row.isNullAt(1) ? " null " : " " + row.getUTF8String(1) + " ")
                              + row.getBoolean(2)
                              + (row.isNullAt(3) ? "" : " " + row.getArray(3).getLong(1))));
        }
      }
      fetch.close();
    }
    return rows;
  }

  @Test
  void rowsAreThoseOnTheDevice() throws Exception {
    List<DeviceBlock> blocks = blocks();
    assertThat(blocks).isNotEmpty();
    DeviceExchange device = ExecutorGpu.current().exchange();
    List<String> inPlace =
        rows(TableFetch.of(device, true, OWNER, blocks, () -> {}, new FetchAhead(0)));
    List<String> throughHost =
        rows(TableFetch.of(null, false, OWNER, blocks, () -> {}, new FetchAhead(0)));
    assertThat(inPlace).hasSize(120_000);
    assertThat(throughHost).isEqualTo(inPlace);
    assertThat(rows(TableFetch.of(null, true, OWNER, blocks, () -> {}, new FetchAhead(0))))
        .as("own blocks while the device cannot be used")
        .isEqualTo(inPlace);
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  /** Spilled blocks are read in place and need no device resources. */
  @Test
  void readersOfTheHostNeedNoRoomOnTheDevice() throws Exception {
    List<DeviceBlock> blocks = blocks();
    DeviceExchange device = ExecutorGpu.current().exchange();
    List<String> expected =
        rows(TableFetch.of(device, true, OWNER, blocks, () -> {}, new FetchAhead(0)));
    assertThat(device.tiers().spill(Long.MAX_VALUE)).isPositive();
    try (CudaMemory all = device.tiers().memory().take(device.tiers().memory().budgetBytes())) {
      assertThat(rows(TableFetch.of(null, false, OWNER, blocks, () -> {}, new FetchAhead(0))))
          .isEqualTo(expected);
      assertThat(device.tiers().bytes(MemoryTier.DEVICE)).isZero();
    }
  }

  /** Happens if Spark removes a shuffle while it is being read. */
  @Test
  void aShuffleThatIsRemovedDuringTheCopyIsMissing() throws Exception {
    Dataset<Row> other =
        WeftGpu.onDevice(spark.session().range(1000).toDF()).repartition(PARTITIONS, col("id"));
    List<BlockKey> before = ExecutorGpu.current().exchange().catalog().keys();
    assertThat(other.collectAsList()).hasSize(1000);
    DeviceCatalog catalog = ExecutorGpu.current().exchange().catalog();
    BlockKey key =
        catalog.keys().stream().filter(each -> !before.contains(each)).findFirst().orElseThrow();
    AtomicBoolean remove = new AtomicBoolean();
    HostReadServer.Copies failing =
        (slice, offset, length) -> {
          if (remove.get()) {
            catalog.removeShuffle(key.shuffleId());
          }
          throw new IllegalStateException("its memory was closed");
        };
    try (HostReadServer server = new HostReadServer(catalog, OWNER, failing, TIMEOUT)) {
      HostReadClient client =
          new HostReadClient((executor, request) -> answer(server, request), "7");
      DeviceBlock block = new DeviceBlock(key, 0, 1);
      TableLayout layout = client.tables(OWNER, block).get(0);
      assertThatThrownBy(() -> client.read(OWNER, block, 0, layout, 0))
          .isInstanceOf(DeviceFetchException.class)
          .hasMessageContaining("its memory was closed");
      remove.set(true);
      assertThatThrownBy(() -> client.read(OWNER, block, 0, layout, 0))
          .isInstanceOf(DeviceFetchException.class)
          .hasMessageContaining("is not on the GPU of executor driver (any more)");
    }
  }

  private static byte[] answer(HostReadServer server, byte[] request) throws IOException {
    try {
      return server.answer(request).get(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
    } catch (ExecutionException | InterruptedException | TimeoutException e) {
      throw new IOException(e);
    }
  }

  /** A reader that continues after a failure must not take the rows so far for all rows. */
  @Test
  void aFetchThatFailsIsNotTheEndOfTheData() {
    BlockKey there = blocks().get(0).key();
    DeviceBlock gone =
        new DeviceBlock(new BlockKey(there.shuffleId(), there.mapId() + 1_000_000), 0, 1);
    DeviceExchange device = ExecutorGpu.current().exchange();
    for (TableFetch fetch :
        List.of(
            new HostTables(OWNER, List.of(gone), () -> {}),
            new PeerTables(
                device, device.client(), OWNER, List.of(gone), () -> {}, new FetchAhead(0)),
            new LocalTables(device, OWNER, List.of(gone), () -> {}))) {
      for (int i = 0; i < 2; i++) {
        assertThatThrownBy(fetch::hasNext)
            .as("%s, time %d", fetch.getClass(), i)
            .isInstanceOf(DeviceFetchException.class);
      }
      fetch.close();
      assertThatNoException().isThrownBy(fetch::close);
    }
  }

  @Test
  void theOwnerSaysWhatItHas() throws Exception {
    BlockKey there = blocks().get(0).key();
    BlockKey gone = new BlockKey(there.shuffleId(), there.mapId() + 1_000_000);
    assertThat(ExecutorGpu.current().hostReads().held(OWNER, List.of(gone, there)))
        .isEqualTo(Set.of(there));
    DeviceBlock missing = new DeviceBlock(gone, 1, 1);
    assertThatThrownBy(
            () ->
                rows(
                    TableFetch.of(
                        null, false, OWNER, List.of(missing), () -> {}, new FetchAhead(0))))
        .isInstanceOfSatisfying(
            DeviceFetchException.class, e -> assertThat(e.block()).isEqualTo(missing))
        .hasMessageContaining("is not on the GPU of executor driver");
  }
}
