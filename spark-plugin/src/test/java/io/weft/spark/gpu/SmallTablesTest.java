package io.weft.spark.gpu;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.catalog.BlockKey;
import io.weft.collectives.buffer.DataType;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.MemoryTier;
import io.weft.device.cuda.NoRoomException;
import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import io.weft.deviceblocks.DeviceRows;
import io.weft.deviceblocks.DeviceSlice;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.WeftTensors;
import io.weft.spark.sql.WeftGpu;
import io.weft.table.ColumnKind;
import io.weft.table.Concatenation;
import io.weft.table.TableColumn;
import io.weft.table.TableLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Small tables of many map tasks, which become few, also where the device is full. */
class SmallTablesTest {
  private static final int MAPS = 60;
  private static final int ROWS = 6000;
  private static final String OWNER = "driver";
  private static final long MIB = 1L << 20;

  /** Of the tables that are put together. */
  private static final int HALFWAY = 20;

  private static LocalSpark spark;
  private static StructType schema;
  private static Dataset<Row> rows;
  private static Dataset<Row> kept;
  private static int keptShuffle;

  @BeforeAll
  static void start() {
    spark =
        DoubleGpus.start(
            Map.of(
                "spark.weft.route", "auto",
                "spark.weft.gpu.exchangeMemory", "64m",
                "spark.weft.gpu.pinnedMemory", "8m",
                "spark.weft.transfers.deadline", "20s",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false"));
    rows =
        spark
            .session()
            .range(0, ROWS, 1, MAPS)
            .selectExpr(
                "id",
                "if(id > 3000 and id % 7 = 0, null, concat('text ', id)) s",
                "if(id < 1000, null, array(cast(id as float), 2f, 3f)) x")
            .select(col("id"), col("s"), WeftTensors.column("x", DataType.FLOAT32, 3));
    schema = rows.schema();
    kept = exchanged();
    keptShuffle = newestShuffle();
  }

  private static Dataset<Row> exchanged() {
    Dataset<Row> exchanged = WeftGpu.onDevice(rows).repartition(2, col("id"));
    assertThat(exchanged.collectAsList()).hasSize(ROWS);
    return exchanged;
  }

  private static int newestShuffle() {
    return device().catalog().keys().stream().mapToInt(BlockKey::shuffleId).max().orElseThrow();
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      kept = null;
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  @AfterEach
  void noRuleIsBrokenAndOnlyBlocksAreLeft() {
    Awaitility.await("no memory beside blocks, all of which can be spilled")
        .atMost(Duration.ofSeconds(30))
        .until(() -> device().tiers().spill(Long.MAX_VALUE) >= 0 && memory().takenBytes() == 0);
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  private static DeviceExchange device() {
    return ExecutorGpu.current().exchange();
  }

  private static List<DeviceBlock> blocks() {
    return blocks(keptShuffle);
  }

  private static List<DeviceBlock> blocks(int shuffle) {
    return device().catalog().keys().stream()
        .filter(key -> key.shuffleId() == shuffle)
        .sorted(Comparator.comparingLong(BlockKey::mapId))
        .map(key -> new DeviceBlock(key, 0, 1))
        .toList();
  }

  private static CudaMemoryPool memory() {
    return device().tiers().memory();
  }

  /** What was read, and in how many tables. */
  private record Read(List<String> rows, int tables, int ofBlocks) {}

  private static Read read(DeviceExchange device) throws DeviceFetchException {
    return read(device, device != null, keptShuffle, () -> {});
  }

  private static Read read(DeviceExchange device, boolean own, int shuffle, Runnable wanted)
      throws DeviceFetchException {
    List<String> rows = new ArrayList<>();
    int tables = 0;
    int ofBlocks = 0;
    for (TableFetch fetch : TableFetch.of(device, own, OWNER, blocks(shuffle), wanted)) {
      try (fetch) {
        while (fetch.hasNext()) {
          try (FetchedTable table = fetch.next()) {
            tables++;
            ofBlocks += table.tables();
            add(table.batch(schema), rows);
          }
        }
      }
    }
    return new Read(rows, tables, ofBlocks);
  }

  /** Something happens when a reader asks for the so manieth time whether it is wanted. */
  private static Runnable at(int call, Runnable what, Runnable next) {
    AtomicInteger calls = new AtomicInteger();
    return () -> {
      int number = calls.incrementAndGet();
      if (number == call) {
        what.run();
      } else if (number == call + 1) {
        next.run();
      }
    };
  }

  private static void spillAll() {
    device().tiers().spill(Long.MAX_VALUE);
    assertThat(device().tiers().bytes(MemoryTier.DEVICE)).isZero();
  }

  /** All that is free, to the last byte that the pool gives. */
  private static List<CudaMemory> takeAll(CudaMemoryPool pool) {
    List<CudaMemory> taken = new ArrayList<>();
    for (long bytes = pool.budgetBytes(); bytes > 0; ) {
      try {
        taken.add(pool.take(bytes));
      } catch (NoRoomException e) {
        bytes /= 2;
      }
    }
    return taken;
  }

  private static void add(ColumnarBatch batch, List<String> rows) {
    batch
        .rowIterator()
        .forEachRemaining(
            row ->
                rows.add(
                    row.getLong(0)
                        + (row.isNullAt(1) ? " null" : " " + row.getUTF8String(1))
                        + (row.isNullAt(2) ? " null" : " " + row.getArray(2).getFloat(0))));
  }

  @Test
  void manyBecomeOne() throws DeviceFetchException {
    Read onHost = read(null);
    Read read = read(device());
    assertThat(read.rows()).isEqualTo(onHost.rows()).hasSizeBetween(ROWS / 3, ROWS);
    assertThat(read.tables()).isEqualTo(1);
    assertThat(read.ofBlocks()).isEqualTo(MAPS);
  }

  @Test
  void blocksThatWereSpilledAreBroughtBackOneByOne() throws DeviceFetchException {
    Read onHost = read(null);
    spillAll();
    Read read = read(device());
    assertThat(read.rows()).isEqualTo(onHost.rows());
    assertThat(read.tables()).isEqualTo(1);
  }

  /** Room for one block at a time, and none for what would be made of them. */
  @Test
  void whereThereIsNoRoomTheyComeAsTheyAre() throws DeviceFetchException {
    Read onHost = read(null);
    CudaMemoryPool memory = memory();
    spillAll();
    List<CudaMemory> taken = new ArrayList<>();
    try {
      taken.add(memory.take(memory.budgetBytes() - MIB));
      taken.add(memory.take(MIB - (64 << 10)));
      Read read = read(device());
      assertThat(read.rows()).isEqualTo(onHost.rows());
      assertThat(read.tables()).isEqualTo(MAPS);
    } finally {
      taken.forEach(CudaMemory::close);
    }
    assertThat(read(device()).tables()).isEqualTo(1);
  }

  /** As many as one fetch brings, which another executor would send. */
  @Test
  void thoseOfAnotherExecutorBecomeOneAndAreGivenBack() throws DeviceFetchException {
    Read onHost = read(null);
    Read read = read(device(), false, keptShuffle, () -> {});
    assertThat(read.rows()).isEqualTo(onHost.rows());
    assertThat(read.tables()).isEqualTo(1);
    assertThat(read.ofBlocks()).isEqualTo(MAPS);
    spillAll(); // None is leased.
  }

  /** Blocks are the normal state of a device that is full: none gives way to a copy of others. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whereTheDeviceIsFullNothingIsSpilled(boolean own) throws DeviceFetchException {
    Read onHost = read(null);
    assertThat(read(device()).tables()).isEqualTo(1); // All are there.
    long spilled = device().tiers().spilledBytes();
    List<CudaMemory> taken = takeAll(memory());
    try {
      Read read = read(device(), own, keptShuffle, () -> {});
      assertThat(read.rows()).isEqualTo(onHost.rows());
      assertThat(read.tables()).isEqualTo(MAPS);
      assertThat(device().tiers().spilledBytes()).isEqualTo(spilled);
    } finally {
      taken.forEach(CudaMemory::close);
    }
  }

  @Test
  void whereThereIsNoPinnedMemoryNothingIsSpilled() throws DeviceFetchException {
    assertThat(read(device()).tables()).isEqualTo(1);
    long spilled = device().tiers().spilledBytes();
    List<CudaMemory> taken = takeAll(device().gpu().pinned());
    int tables = 0;
    try (TableFetch fetch = TableFetch.of(device(), true, OWNER, blocks(), () -> {}).get(0)) {
      for (; fetch.hasNext(); tables++) {
        fetch.next().close();
      }
    } finally {
      taken.forEach(CudaMemory::close);
    }
    assertThat(tables).isEqualTo(MAPS);
    assertThat(device().tiers().spilledBytes()).isEqualTo(spilled);
  }

  /** Room for the result, and some were copied, when there is none for the next. */
  @Test
  void whatIsGivenUpHalfwayIsReadOneByOne() throws DeviceFetchException {
    Read onHost = read(null);
    List<AutoCloseable> held = new ArrayList<>();
    Runnable starve =
        () -> {
          held.add(slice(HALFWAY - 2).leaseIfThere().orElseThrow());
          assertThat(device().tiers().spill(Long.MAX_VALUE)).isPositive();
          held.addAll(takeAll(memory()));
        };
    Runnable relent = () -> held.forEach(SmallTablesTest::close);
    Read read = read(device(), true, keptShuffle, at(HALFWAY, starve, relent));
    assertThat(held).hasSizeGreaterThan(1);
    assertThat(read.rows()).isEqualTo(onHost.rows());
    assertThat(read.tables()).isEqualTo(MAPS);
  }

  private static void close(AutoCloseable each) {
    try {
      each.close();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private static DeviceSlice slice(int block) {
    try {
      return DeviceSlice.of(device().catalog(), blocks().get(block), OWNER).get(0);
    } catch (DeviceFetchException e) {
      throw new AssertionError(e);
    }
  }

  /** A load that does not end in time is no end of what can be read without putting together. */
  @Test
  void aLoadThatTakesTooLongIsGivenUp() throws DeviceFetchException {
    Read onHost = read(null);
    spillAll();
    Runnable stop =
        () -> {
          DoubleGpus.controls().cudaDoublePause(1);
          Thread.currentThread().interrupt(); // Instead of the deadline.
        };
    AtomicBoolean wasInterrupted = new AtomicBoolean();
    Runnable goOn =
        () -> {
          wasInterrupted.set(Thread.interrupted());
          DoubleGpus.controls().cudaDoublePause(0);
        };
    Read read = read(device(), true, keptShuffle, at(1, stop, goOn));
    assertThat(wasInterrupted).isTrue();
    assertThat(read.rows()).isEqualTo(onHost.rows());
    assertThat(read.tables()).isEqualTo(MAPS);
  }

  @Test
  void aShuffleThatGoesMeanwhileIsTheReason() {
    Dataset<Row> other = exchanged();
    int shuffle = newestShuffle();
    Runnable remove = () -> device().catalog().removeShuffle(shuffle);
    assertThatThrownBy(() -> read(device(), true, shuffle, at(HALFWAY, remove, () -> {})))
        .isInstanceOf(DeviceFetchException.class)
        .hasMessageContaining("is not on the GPU of executor " + OWNER + " (any more)");
    assertThat(other).isNotNull();
  }

  @Test
  void aTaskThatIsKilledMeanwhileLeavesNothing() {
    Runnable kill =
        () -> {
          throw new TaskKilledException("a test");
        };
    assertThatThrownBy(() -> read(device(), true, keptShuffle, at(HALFWAY, kill, kill)))
        .isInstanceOf(TaskKilledException.class);
  }

  /** As when the executor ends. */
  @Test
  void aLaneThatIsClosedIsSaid() throws DeviceFetchException {
    SmallTables closed =
        SmallTables.open(device().gpu(), memory(), device().unitBytes(), Duration.ofSeconds(20));
    List<TableLayout> layouts = List.of(slice(0).layout());
    try (Concatenation made = closed.start(layouts).orElseThrow();
        DeviceRows rows = slice(0).lease()) {
      closed.close();
      made.add(FetchedTable.lent(rows));
      assertThatThrownBy(made::finish).isInstanceOf(IllegalStateException.class);
    }
  }

  private static TableLayout bytes(long bytes) {
    return rows(ColumnKind.LONG, bytes / Long.BYTES);
  }

  private static TableLayout rows(ColumnKind kind, long rows) {
    return TableLayout.fixed(List.of(TableColumn.of(kind, false)), (int) rows);
  }

  @Test
  void largeTablesStayAsTheyAre() {
    SmallTables small = device().smallTables();
    long unit = device().unitBytes();
    assertThat(unit).isEqualTo(2 * MIB);
    TableLayout large = bytes(unit / 2 + 8);
    TableLayout tiny = bytes(100);
    assertThat(small.together(List.of(large, tiny).iterator())).isEqualTo(1);
    assertThat(small.together(List.of(tiny, large).iterator())).isEqualTo(1);
    assertThat(small.together(List.of(tiny, tiny, large).iterator())).isEqualTo(2);
    TableLayout half = bytes(unit / 2);
    assertThat(small.together(List.of(half, half, tiny).iterator())).isEqualTo(2);
    assertThat(small.together(List.of(tiny).iterator())).isEqualTo(1);
    TableLayout narrow = rows(ColumnKind.BYTE, unit / 30); // Rows take more memory than this when they are split.
    assertThat(small.together(Collections.nCopies(30, narrow).iterator())).isEqualTo(5);
  }
}
