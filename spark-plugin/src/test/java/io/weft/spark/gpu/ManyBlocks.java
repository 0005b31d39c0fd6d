package io.weft.spark.gpu;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.MemoryTier;
import io.weft.device.cuda.NoRoomException;
import io.weft.shuffle.device.DeviceBlock;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.device.DeviceSlice;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.WeftTensors;
import io.weft.spark.sql.WeftGpu;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.awaitility.Awaitility;

/** An application of one executor, and an exchange with a small table for each map task. */
final class ManyBlocks implements AutoCloseable {
  static final int MAPS = 60;
  static final int ROWS = 6000;
  static final String OWNER = "driver";

  /** Number of tables in half of the blocks. */
  static final int HALFWAY = 20;

  private final LocalSpark spark;
  private final StructType schema;
  private final Dataset<Row> rows;

  /** The shuffle of the kept data set. */
  final int shuffle;

  /** Keeps the blocks: Spark frees them when the data set is unreachable. */
  private final Dataset<Row> kept;

  /** Starts an application with one exchange. */
  ManyBlocks() {
    spark =
        DoubleGpus.start(
            Map.of(
                "spark.weft.route", "auto",
                "spark.weft.gpu.exchangeMemory", "64m",
                "spark.weft.gpu.pinnedMemory", "8m",
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
    shuffle = newestShuffle();
  }

  Dataset<Row> exchanged() {
    Dataset<Row> exchanged = WeftGpu.onDevice(rows).repartition(2, col("id"));
    assertThat(exchanged.collectAsList()).hasSize(ROWS);
    return exchanged;
  }

  int newestShuffle() {
    return device().catalog().keys().stream().mapToInt(BlockKey::shuffleId).max().orElseThrow();
  }

  static DeviceExchange device() {
    return ExecutorGpu.current().exchange();
  }

  List<DeviceBlock> blocks() {
    return blocks(shuffle);
  }

  List<DeviceBlock> blocks(int shuffle) {
    return device().catalog().keys().stream()
        .filter(key -> key.shuffleId() == shuffle)
        .sorted(Comparator.comparingLong(BlockKey::mapId))
        .map(key -> new DeviceBlock(key, 0, 1))
        .toList();
  }

  static CudaMemoryPool memory() {
    return device().tiers().memory();
  }

  /** The rows that were read, and the number of tables. */
  record Read(List<String> rows, int tables, int ofBlocks) {}

  Read read(DeviceExchange device) throws DeviceFetchException {
    return read(device, device != null, shuffle, () -> {});
  }

  Read read(DeviceExchange device, boolean own, int shuffle, Runnable wanted)
      throws DeviceFetchException {
    List<String> rows = new ArrayList<>();
    int tables = 0;
    int ofBlocks = 0;
    for (TableFetch fetch :
        TableFetch.of(device, own, OWNER, blocks(shuffle), wanted, new FetchAhead(0))) {
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

  /**
   * Returns a callback that runs one action at a call counted from 1, and another action at the
   * next call.
   */
  static Runnable at(int call, Runnable what, Runnable next) {
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

  static void spillAll() {
    device().tiers().spill(Long.MAX_VALUE);
    assertThat(device().tiers().bytes(MemoryTier.DEVICE)).isZero();
  }

  /** Allocates all free memory of a pool, to the last byte. */
  static List<CudaMemory> takeAll(CudaMemoryPool pool) {
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

  DeviceSlice slice(int block) {
    try {
      return DeviceSlice.of(device().catalog(), blocks().get(block), OWNER).get(0);
    } catch (DeviceFetchException e) {
      throw new AssertionError(e);
    }
  }

  /**
   * Verifies that only blocks use device memory, that all of them can be spilled, and that no
   * driver rule was broken.
   */
  static void assertOnlyBlocksAreLeft() {
    Awaitility.await("no memory beside blocks")
        .atMost(Duration.ofSeconds(30))
        .until(() -> device().tiers().spill(Long.MAX_VALUE) >= 0 && memory().takenBytes() == 0);
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  @Override
  public void close() {
    Reference.reachabilityFence(kept);
    spark.close();
    DoubleGpus.assertClean();
  }
}
