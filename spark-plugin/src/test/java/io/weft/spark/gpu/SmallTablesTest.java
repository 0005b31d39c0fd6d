package io.weft.spark.gpu;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.catalog.BlockKey;
import io.weft.collectives.buffer.DataType;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.WeftTensors;
import io.weft.spark.sql.WeftGpu;
import io.weft.table.ColumnKind;
import io.weft.table.TableColumn;
import io.weft.table.TableLayout;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Small tables of many map tasks, which become few, also where the device is full. */
class SmallTablesTest {
  private static final int MAPS = 60;
  private static final int ROWS = 6000;
  private static final String OWNER = "driver";
  private static final long MIB = 1L << 20;

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
                "spark.weft.transfers.deadline", "20s",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false"));
    Dataset<Row> rows =
        spark
            .session()
            .range(0, ROWS, 1, MAPS)
            .selectExpr(
                "id",
                "if(id > 3000 and id % 7 = 0, null, concat('text ', id)) s",
                "if(id < 1000, null, array(cast(id as float), 2f, 3f)) x")
            .select(col("id"), col("s"), WeftTensors.column("x", DataType.FLOAT32, 3));
    schema = rows.schema();
    kept = WeftGpu.onDevice(rows).repartition(2, col("id"));
    assertThat(kept.collectAsList()).hasSize(ROWS);
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
  void noRuleIsBroken() {
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  private static DeviceExchange device() {
    return ExecutorGpu.current().exchange();
  }

  private static List<DeviceBlock> blocks() {
    return device().catalog().keys().stream()
        .sorted(Comparator.comparingLong(BlockKey::mapId))
        .map(key -> new DeviceBlock(key, 0, 1))
        .toList();
  }

  /** What was read, and in how many tables. */
  private record Read(List<String> rows, int tables, int ofBlocks) {}

  private static Read read(DeviceExchange device) throws DeviceFetchException {
    List<String> rows = new ArrayList<>();
    int tables = 0;
    int ofBlocks = 0;
    for (TableFetch fetch : TableFetch.of(device, device != null, OWNER, blocks(), () -> {})) {
      while (fetch.hasNext()) {
        try (FetchedTable table = fetch.next()) {
          tables++;
          ofBlocks += table.tables();
          add(table.batch(schema), rows);
        }
      }
      fetch.close();
    }
    return new Read(rows, tables, ofBlocks);
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
    assertThat(device().tiers().spill(Long.MAX_VALUE)).isPositive();
    Read read = read(device());
    assertThat(read.rows()).isEqualTo(onHost.rows());
    assertThat(read.tables()).isEqualTo(1);
  }

  /** Room for one block at a time, and none for what would be made of them. */
  @Test
  void whereThereIsNoRoomTheyComeAsTheyAre() throws DeviceFetchException {
    Read onHost = read(null);
    CudaMemoryPool memory = device().tiers().memory();
    assertThat(device().tiers().spill(Long.MAX_VALUE)).isPositive();
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

  private static TableLayout bytes(long bytes) {
    return TableLayout.fixed(List.of(TableColumn.of(ColumnKind.BYTE, false)), (int) bytes);
  }

  @Test
  void largeTablesStayAsTheyAre() {
    SmallTables small = device().smallTables();
    long unit = device().unitBytes();
    assertThat(unit).isEqualTo(2 * MIB);
    TableLayout large = bytes(unit / 2 + 1);
    TableLayout tiny = bytes(100);
    assertThat(small.together(List.of(large, tiny).iterator())).isEqualTo(1);
    assertThat(small.together(List.of(tiny, large).iterator())).isEqualTo(1);
    assertThat(small.together(List.of(tiny, tiny, large).iterator())).isEqualTo(2);
    TableLayout half = bytes(unit / 2);
    assertThat(small.together(List.of(half, half, tiny).iterator())).isEqualTo(2);
    assertThat(small.together(List.of(tiny).iterator())).isEqualTo(1);
  }
}
