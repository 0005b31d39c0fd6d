package io.weft.spark.feed;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.memory.Memory;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.DoubleGpus;
import io.weft.spark.GpuSpark;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.runtime.FeedCounters;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import io.weft.spark.sql.DeviceFunctions;
import io.weft.spark.sql.WeftGpu;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import io.weft.testgpus.TestMachine;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Feeds of queries that end on the GPU, compared with feeds of the same rows on the host. */
class GpuQueryFeedTest {
  /** A unit is 512 KiB. */
  @RegisterExtension
  static final GpuSpark SPARK =
      new GpuSpark(
          Map.of(
              "spark.master", "local[2,4]",
              "spark.weft.gpu.exchangeMemory", "16m",
              "spark.weft.gpu.memory", "2m",
              "spark.weft.gpu.pinnedMemory", "4m"));

  private long keptBefore;
  private long leftBefore;

  @BeforeEach
  void count() {
    keptBefore = FeedCounters.get(FeedCounter.GPU_INPUT_KEPT);
    leftBefore = FeedCounters.get(FeedCounter.GPU_INPUT_LEFT);
  }

  @AfterEach
  void adaptiveAgain() {
    session().conf().set("spark.sql.adaptive.enabled", "true");
  }

  private static SparkSession session() {
    return SPARK.local().session();
  }

  private static long kept(long before) {
    return FeedCounters.get(FeedCounter.GPU_INPUT_KEPT) - before;
  }

  private static long left(long before) {
    return FeedCounters.get(FeedCounter.GPU_INPUT_LEFT) - before;
  }

  private static Dataset<Row> rows(int rows) {
    return FeedData.rows(session(), rows, 3);
  }

  private static Dataset<Row> numbers(int rows) {
    return rows(rows).drop("text");
  }

  /** The rows of a query that ends on the GPU. */
  private static Dataset<Row> onDevice(Dataset<Row> rows) {
    return WeftGpu.mapBatches(rows, rows.schema(), DeviceFunctions::copy);
  }

  /** Every batch of every rank and epoch has the same rows both ways. */
  private static void assertSame(Dataset<Row> rows, UnaryOperator<WeftFeed> settings) {
    List<ArrayList<List<Long>>> expected =
        settings.apply(WeftFeed.shards(rows, 2).batchRows(10)).train(GpuExchangeTest::onHost);
    List<ArrayList<List<Long>>> found =
        settings
            .apply(WeftFeed.shards(onDevice(rows), 2).batchRows(10))
            .onGpus()
            .train(GpuExchangeTest::onDevice);
    assertThat(found).isEqualTo(expected);
  }

  private void assertKept(Dataset<Row> rows, UnaryOperator<WeftFeed> settings) {
    long before = kept(0);
    assertSame(rows, settings);
    assertThat(kept(before)).isPositive();
    assertThat(left(leftBefore)).isZero();
  }

  @Test
  void evenlyDealtRowsEqualThoseOfTheHost() {
    assertKept(rows(400), feed -> feed);
    assertKept(rows(205), feed -> feed.lastBatch(LastBatch.KEEP));
    assertKept(rows(7), feed -> feed.lastBatch(LastBatch.KEEP));
    assertKept(rows(2), feed -> feed);
  }

  /** Batches of rows of several map tasks are put together where the export keeps them. */
  @Test
  void anExportNeedsNoMemoryBesideItsBatches() {
    Dataset<Row> rows = session().range(0, 90_000, 1, 3).selectExpr("id", "id a", "id b");
    WeftFeed feed = WeftFeed.shards(WeftGpu.onDevice(rows), 2).batchRows(32_000);
    try (GpuFeedExport export = feed.exportToGpus()) {
      assertThat(2 * export.batchBytes()).isBetween(1_500_000L, 2L << 20);
      assertThat(export.shards()).extracting(GpuFeedExport.Shard::batches).containsExactly(1, 1);
    }
    assertThat(kept(keptBefore)).isPositive();
  }

  @Test
  void shuffledRowsEqualThoseOfTheHost() {
    assertKept(numbers(1000), feed -> feed.shuffled(3));
    assertKept(numbers(205), feed -> feed.shuffled(4).lastBatch(LastBatch.KEEP));
    assertKept(numbers(1000), feed -> feed.shuffled(5).by("group").lastBatch(LastBatch.KEEP));
  }

  @Test
  void rowsOfAKeyGoWhereSparksHashSendsThem() {
    assertKept(rows(300), feed -> feed.by("group"));
    assertKept(rows(300), feed -> feed.by("group", "id").lastBatch(LastBatch.KEEP));
  }

  /** They are in the table, but not in the feed. */
  @Test
  void keysThatAreNoNumbersAreHashedOnTheDevice() {
    assertKept(rows(300), feed -> feed.by("text").lastBatch(LastBatch.KEEP));
    assertKept(rows(300), feed -> feed.by("GROUP", "text", "id"));
    Dataset<Row> others =
        rows(300)
            .selectExpr(
                "id",
                "x",
                "group",
                "cast(id % 5 as decimal(30, 2)) large",
                "date_add(date'2026-11-27', cast(id % 9 as int)) day",
                "id % 2 = 0 even",
                "unhex(hex(id % 4)) raw");
    assertKept(others, feed -> feed.by("large").lastBatch(LastBatch.KEEP));
    assertKept(others, feed -> feed.by("raw", "even", "day").lastBatch(LastBatch.KEEP));
  }

  /** The bytes of its rows vary, no device hashes it, or it is not in the table that is ordered. */
  @Test
  void whatMapTasksCannotDoOnTheDeviceIsDoneOnTheHost() {
    assertSame(rows(300), feed -> feed.shuffled(3));
    assertSame(rows(300), feed -> feed.shuffled(3).by("text").lastBatch(LastBatch.KEEP));
    assertSame(rows(300), feed -> feed.by("x").lastBatch(LastBatch.KEEP));
    assertSame(
        numbers(300).selectExpr("*", "id % 2 = 0 even"),
        feed -> feed.shuffled(3).by("even").lastBatch(LastBatch.KEEP));
    assertThat(kept(keptBefore)).isZero();
  }

  /**
   * A task has several tables, and several units with rows that are carried from one to the next.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void manyUnitsEqualThoseOfTheHost(boolean shuffled) {
    Dataset<Row> rows = session().range(0, 150_000, 1, 1).toDF();
    UnaryOperator<WeftFeed> settings =
        feed -> (shuffled ? feed.shuffled(9) : feed).batchRows(100).lastBatch(LastBatch.KEEP);
    List<Long> expected = ids(settings.apply(WeftFeed.shards(rows, 1)).onGpus());
    assertThat(kept(keptBefore)).isZero();
    assertThat(ids(settings.apply(WeftFeed.shards(onDevice(rows), 1)).onGpus()))
        .isEqualTo(expected);
    assertThat(kept(keptBefore)).isGreaterThan(1);
  }

  private static List<Long> ids(WeftFeed feed) {
    return feed.train(
            task -> {
              ArrayList<Long> ids = new ArrayList<>();
              try (GpuDownload download = new GpuDownload();
                  GpuFeedBatches batches = task.gpuBatches(0)) {
                while (batches.hasNext()) {
                  GpuFeedBatch batch = batches.next();
                  batch.orderBefore(download.stream());
                  ByteBuffer values = download.bytes(batch.tensor("id"));
                  batch.usedOn(download.stream());
                  for (int row = 0; row < batch.rows(); row++) {
                    ids.add(values.getLong(8 * row));
                  }
                }
              }
              return ids;
            })
        .get(0);
  }

  private static final AtomicInteger TABLES = new AtomicInteger();

  /** The first rows of a batch. Of three tables the work of the second fails. */
  private static DeviceTable failingSecond(DeviceTable batch, DeviceWork work) {
    TableLayout layout = work.layout(1000, 0);
    CudaMemory memory = work.take(layout.bytes());
    long from = batch.address() + batch.layout().data(0);
    long to = memory.address() + layout.data(0);
    Event copied =
        work.lane()
            .submit(
                "the first rows of " + batch,
                () -> work.lane().stream().copyOnDevice(to, from, 8 * 1000),
                batch.ready());
    if (TABLES.incrementAndGet() % 3 != 2) {
      return DeviceTable.of(memory, layout, copied);
    }
    HostEvent failed = new HostEvent("work of a function");
    failed.record();
    failed.fail(new IllegalStateException("the second table failed"));
    return DeviceTable.of(memory, layout, failed);
  }

  /** The copies of the tables before and behind it, in one unit, succeed. */
  @Test
  void aTableWhoseWorkFailsFailsTheFeed() {
    Dataset<Row> rows = session().range(0, 150_000, 1, 1).toDF();
    WeftFeed feed =
        WeftFeed.shards(WeftGpu.mapBatches(rows, rows.schema(), GpuQueryFeedTest::failingSecond), 1)
            .batchRows(100)
            .onGpus();
    assertThatThrownBy(() -> ids(feed)).hasStackTraceContaining("the second table failed");
    assertThat(TABLES.get() % 3).as("tables of each attempt").isZero();
  }

  /** The rows that a shuffle keeps take more than a unit: they are kept on the host. */
  @Test
  void aDeviceThatIsTooSmallLeavesTheShuffleToTheHost() {
    Dataset<Row> wide =
        session()
            .range(0, 192, 1, 4)
            .select(
                col("id"),
                WeftTensors.column(
                    expr("array_repeat(cast(id as float), 4096)"), "x", DataType.FLOAT32, 4096));
    UnaryOperator<WeftFeed> settings = feed -> feed.batchRows(8).shuffled(2);
    List<Long> expected = ids(settings.apply(WeftFeed.shards(wide, 1)).onGpus());
    assertThat(ids(settings.apply(WeftFeed.shards(onDevice(wide), 1)).onGpus()))
        .isEqualTo(expected);
    assertThat(kept(keptBefore)).isZero();
    assertThat(left(leftBefore)).isPositive();
  }

  /** Only the counts of a rank's rows come to the host, before the rank downloads its batches. */
  @Test
  void noRowIsCopiedToTheHost() {
    TestMachine.assumeDoubles(); // They count.
    WeftFeed feed = WeftFeed.shards(onDevice(numbers(5000)), 1).batchRows(10).shuffled(3).onGpus();
    long unused = DoubleGpus.controls().cudaDoubleBytesToHost();
    List<Long> bytes = feed.train(task -> DoubleGpus.controls().cudaDoubleBytesToHost());
    assertThat(bytes.get(0)).isLessThan(500);
    assertThat(kept(keptBefore)).isPositive();
    WeftFeed asRows = WeftFeed.shards(onDevice(rows(5000)), 1).batchRows(10).shuffled(3).onGpus();
    assertThat(asRows.train(task -> DoubleGpus.controls().cudaDoubleBytesToHost()).get(0))
        .as("with strings of rows that a shuffle keeps on the host")
        .isGreaterThan(5000 * 8);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void blocksOfAnExchangeStayOnTheDevice(boolean adaptive) {
    session().conf().set("spark.sql.adaptive.enabled", adaptive);
    Dataset<Row> exchanged = onDevice(rows(400)).repartition(3, col("group"));
    List<Long> ids =
        ids(WeftFeed.shards(exchanged, 1).batchRows(10).lastBatch(LastBatch.KEEP).onGpus());
    assertThat(ids).containsExactlyInAnyOrderElementsOf(LongStream.range(0, 400).boxed().toList());
    assertThat(kept(keptBefore)).isPositive();
    assertThat(left(leftBefore)).isZero();
  }

  /** The function declares nulls that are not there: the table has validity bits. */
  @Test
  void bitsWithoutNullsAreRead() {
    Dataset<Row> numbers = session().range(0, 400, 1, 3).selectExpr("id", "id * 2 as twice");
    Dataset<Row> nullable =
        WeftGpu.mapBatches(numbers, numbers.schema(), (batch, work) -> withBits(batch, work, -1));
    assertThat(ids(WeftFeed.shards(nullable, 1).batchRows(10).onGpus()))
        .isEqualTo(ids(WeftFeed.shards(numbers, 1).batchRows(10).onGpus()));
    assertThat(kept(keptBefore)).isPositive();
    assertThat(left(leftBefore)).isZero();
  }

  @Test
  void aNullIsTheErrorThatItIsOnTheHost() {
    Dataset<Row> numbers = session().range(0, 400, 1, 3).selectExpr("id", "id * 2 as twice");
    Dataset<Row> nullable =
        WeftGpu.mapBatches(numbers, numbers.schema(), (batch, work) -> withBits(batch, work, -2));
    String message = "column id, row 0 of the batch: null is not a value of tensor int64[]";
    assertThatThrownBy(() -> ids(WeftFeed.shards(nullable, 1).batchRows(10).onGpus()))
        .hasStackTraceContaining(message);
    Dataset<Row> onHost = numbers.selectExpr("if(id = 0, null, id) id", "twice");
    assertThatThrownBy(() -> ids(WeftFeed.shards(onHost, 1).batchRows(10).onGpus()))
        .hasStackTraceContaining(message);
    assertThat(left(leftBefore)).isPositive();
  }

  /** Copies a batch of two columns and gives the first one validity bits. */
  private static DeviceTable withBits(DeviceTable batch, DeviceWork work, int firstByte) {
    TableLayout from = batch.layout();
    TableColumn first = TableColumn.of(from.columns().get(0).kind(), true);
    TableLayout made = TableLayout.fixed(List.of(first, from.columns().get(1)), batch.rows());
    CudaMemory memory = work.take(made.bytes());
    long bytes = (batch.rows() + 7) / 8;
    try (Tensor bits = Tensor.allocate(TensorType.of(DataType.INT8, bytes))) {
      Memory.setMemory(bits.address(), bytes, (byte) -1);
      Memory.putByte(bits.address(), (byte) firstByte);
      work.uploads()
          .upload(
              "bits",
              List.of(new DeviceUploads.Run(bits.address(), made.validity(0), bytes)),
              memory)
          .awaitRecorded(work.deadline());
    }
    long source = batch.address();
    long to = memory.address();
    Event copied =
        work.lane()
            .submit(
                "columns",
                () -> {
                  for (int c = 0; c < 2; c++) {
                    work.lane().stream()
                        .copyOnDevice(to + made.data(c), source + from.data(c), from.dataBytes(c));
                  }
                },
                batch.ready());
    return DeviceTable.of(memory, made, copied);
  }

  /** The first attempt of a map task fails. */
  @Test
  void aRepeatedTaskDealsTheSameRows() {
    Dataset<Row> rows = numbers(600);
    List<Long> expected = ids(WeftFeed.shards(rows, 1).batchRows(10).shuffled(3).onGpus());
    Dataset<Row> failing =
        WeftGpu.mapBatches(
            rows,
            rows.schema(),
            (batch, work) -> {
              TaskContext context = TaskContext.get();
              if (context.partitionId() == 1 && context.attemptNumber() == 0) {
                throw new IllegalStateException("an attempt that fails");
              }
              return DeviceFunctions.copy(batch, work);
            });
    assertThat(ids(WeftFeed.shards(failing, 1).batchRows(10).shuffled(3).onGpus()))
        .isEqualTo(expected);
    assertThat(kept(keptBefore)).isPositive();
    assertThat(ExecutorGpu.current().exchangeObstacle()).isEmpty();
  }
}
