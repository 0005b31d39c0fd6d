package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.jna.Function;
import com.sun.jna.Pointer;
import io.weft.collectives.DataType;
import io.weft.device.Deadline;
import io.weft.device.Event.State;
import io.weft.memory.Memory;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.StageAttempts;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.gpu.SharedGpu;
import io.weft.spark.runtime.FeedCounters;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import io.weft.tensor.TensorType;
import io.weft.tensor.dlpack.Dlpack;
import io.weft.tensor.dlpack.DlpackForm;
import io.weft.testgpus.TestMachine;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Batches in GPU memory, on the double of the driver, in a whole application. */
class GpuFeedTest {
  private static LocalSpark spark;

  @TempDir Path folder;

  @BeforeAll
  static void start() {
    spark = DoubleGpus.start(Map.of("spark.weft.gpu.memory", "8m"));
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      spark.close();
      DoubleGpus.assertClean();
      assertThat(Dlpack.exported()).isZero();
    }
  }

  @AfterEach
  void noRuleIsBroken() {
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  private static WeftFeed feed(int rows) {
    return WeftFeed.shards(FeedData.rows(spark.session(), rows, 3), 2).batchRows(10);
  }

  private static List<Long> range(long rows) {
    return LongStream.range(0, rows).boxed().toList();
  }

  /** The ids of an epoch, batch by batch. */
  private static ArrayList<List<Long>> epoch(FeedTask task, int epoch) {
    ArrayList<List<Long>> ids = new ArrayList<>();
    try (GpuFeedBatches batches = task.gpuBatches(epoch);
        GpuDownload download = new GpuDownload()) {
      while (batches.hasNext()) {
        ids.add(download.ids(batches.next()));
      }
    }
    return ids;
  }

  @Test
  void everyRowIsOnTheGpuOnceInEveryEpochInTheOrderOfTheHost() {
    long uploaded = FeedCounters.get(FeedCounter.GPU_BATCHES);
    List<ArrayList<List<Long>>> ranks =
        feed(400)
            .shuffled(5)
            .train(
                task -> {
                  ArrayList<List<Long>> first = epoch(task, 0);
                  ArrayList<List<Long>> second = epoch(task, 1);
                  if (!first.equals(FeedData.epoch(task, 0))
                      || !second.equals(FeedData.epoch(task, 1))
                      || first.equals(second)
                      || task.gpuObstacle().isPresent()) {
                    throw new AssertionError(first + " and " + second);
                  }
                  return first;
                });
    List<Long> ids = new ArrayList<>();
    ranks.forEach(rank -> rank.forEach(ids::addAll));
    assertThat(ids).containsExactlyInAnyOrderElementsOf(range(400));
    assertThat(FeedCounters.get(FeedCounter.GPU_BATCHES) - uploaded).isEqualTo(80);
  }

  @Test
  void batchesThatAreNotFullHaveTheirRows() {
    List<ArrayList<List<Long>>> ranks =
        feed(205).lastBatch(LastBatch.KEEP).train(task -> epoch(task, 0));
    List<Long> ids = new ArrayList<>();
    ranks.forEach(rank -> rank.forEach(ids::addAll));
    assertThat(ids).containsExactlyInAnyOrderElementsOf(range(205));
    assertThat(ranks.get(0)).hasSameSizeAs(ranks.get(1));
  }

  @Test
  void tensorsDescribeTypeAndAddress() {
    List<String> found =
        feed(40)
            .train(
                task -> {
                  try (GpuFeedBatches batches = task.gpuBatches(0)) {
                    GpuFeedBatch batch = batches.next();
                    GpuTensor x = batch.tensor("x");
                    assertThat(x.type()).isEqualTo(TensorType.of(DataType.FLOAT32, 10, 2, 3));
                    assertThat(x.device()).hasToString("cuda:0");
                    assertThat(x.buffer().address() % 256).isZero();
                    assertThat(
                            ExecutorGpu.current()
                                .open()
                                .device()
                                .isDeviceMemory(x.buffer().address()))
                        .isTrue();
                    assertThatThrownBy(() -> batch.tensor("text"))
                        .hasMessage(
                            "column text is not on the GPU, which has only numbers and tensors of"
                                + " fixed shape: [id, x, group]");
                    batches.next();
                    assertThatThrownBy(() -> batch.tensor("x")).hasMessageContaining("has ended");
                    assertThatThrownBy(batch::retain).hasMessageContaining("has ended");
                    return "well";
                  }
                });
    assertThat(found).containsExactly("well", "well");
  }

  /** Two batches, one in use and one prefetched; a third while the device still uses the first. */
  @Test
  void memoryOfABatchIsNotReusedWhileAStreamUsesIt() {
    TestMachine.assumeDoubles(); // Only they can be paused.
    List<Long> kept =
        WeftFeed.shards(FeedData.rows(spark.session(), 80, 3), 1)
            .batchRows(10)
            .train(
                task -> {
                  SharedGpu gpu = ExecutorGpu.current().open();
                  try (GpuFeedBatches batches = task.gpuBatches(0);
                      GpuDownload download = new GpuDownload()) {
                    GpuFeedBatch batch = batches.next();
                    batch.ready().await(Deadline.after(Duration.ofSeconds(60)));
                    long two = gpu.memoryTaken();
                    DoubleGpus.controls().cudaDoublePause(1);
                    try {
                      batch.usedOn(download.stream());
                      batches.next();
                      return gpu.memoryTaken() - two - two / 2;
                    } finally {
                      DoubleGpus.controls().cudaDoublePause(0);
                      awaitTaken(gpu, two);
                    }
                  }
                });
    assertThat(kept).containsExactly(0L);
  }

  @Test
  void memoryOfABatchIsNotReusedWhileALeaseKeepsIt() {
    List<Boolean> kept =
        feed(80)
            .train(
                task -> {
                  try (GpuFeedBatches batches = task.gpuBatches(0);
                      GpuDownload download = new GpuDownload()) {
                    GpuFeedBatch first = batches.next();
                    long address = first.tensor("x").buffer().address();
                    FeedLease lease = first.retain();
                    for (int step = 1; step < task.steps(); step++) {
                      GpuFeedBatch next = batches.next();
                      assertThat(download.ids(next)).hasSize(10);
                      assertThat(next.tensor("x").buffer().address()).isNotEqualTo(address);
                    }
                    assertThat(download.ids(first)).hasSize(10);
                    lease.close();
                    assertThatThrownBy(() -> first.tensor("x")).hasMessageContaining("has ended");
                    return true;
                  }
                });
    assertThat(kept).containsExactly(true, true);
  }

  /** The consumer returns a tensor long after the task has ended. */
  @Test
  void exportsByDlpackMayOutliveTheTask() {
    List<Long> structures =
        feed(40)
            .train(
                task -> {
                  try (GpuFeedBatches batches = task.gpuBatches(0)) {
                    GpuFeedBatch batch = batches.next();
                    long structure = batch.dlpack("x", DlpackForm.VERSIONED);
                    assertThat(batch.ready().state()).isEqualTo(State.COMPLETE);
                    assertThat(Memory.getLong(structure + 32))
                        .isEqualTo(batch.tensor("x").buffer().address());
                    return structure;
                  }
                });
    assertThat(structures).hasSize(2).doesNotHaveDuplicates();
    assertThat(Dlpack.exported()).isEqualTo(2);
    for (long structure : structures) {
      assertThat(Memory.getInt(structure + 40)).as("CUDA").isEqualTo(2);
    }
    SharedGpu gpu = ExecutorGpu.current().open();
    DoubleGpus.controls().cudaDoublePause(1);
    try {
      // When the consumer drops a tensor, its kernels are enqueued but have not run.
      for (long structure : structures) {
        Function.getFunction(new Pointer(Memory.getLong(structure + 16)))
            .invokeVoid(new Object[] {new Pointer(structure)});
      }
      assertThat(Dlpack.exported()).isZero();
      if (!TestMachine.isReal()) { // Only the doubles are paused.
        assertThat(gpu.memoryTaken()).as("while the consumer's work runs").isPositive();
      }
    } finally {
      DoubleGpus.controls().cudaDoublePause(0);
    }
    awaitTaken(gpu, 0);
  }

  private static void awaitTaken(SharedGpu gpu, long bytes) {
    Awaitility.await("memory that is taken")
        .atMost(Duration.ofSeconds(60))
        .until(() -> gpu.memoryTaken() == bytes);
  }

  /** The rank names a stream of the consumer that does not wait for any other stream. */
  @Test
  void exportsByDlpackAreKeptForTheStreamThatIsNamed() {
    List<Boolean> kept =
        feed(40)
            .train(
                task -> {
                  try (GpuFeedBatches batches = task.gpuBatches(0);
                      GpuDownload download = new GpuDownload()) {
                    Dlpack.delete(
                        batches.next().dlpack("x", DlpackForm.VERSIONED, download.stream()));
                    return Dlpack.exported() >= 0;
                  }
                });
    assertThat(kept).containsExactly(true, true);
    awaitTaken(ExecutorGpu.current().open(), 0);
  }

  @Test
  void hostBatchesAreExportedByDlpackInPlace() {
    List<Integer> elements =
        feed(40)
            .train(
                task -> {
                  try (FeedBatches batches = task.batches(0)) {
                    FeedBatch batch = batches.next();
                    long structure = batch.dlpack("x", DlpackForm.VERSIONED);
                    long address = Memory.getLong(structure + 32);
                    assertThat(address).isEqualTo(batch.tensor("x").address());
                    assertThatThrownBy(() -> batch.dlpack("x", DlpackForm.PLAIN))
                        .isInstanceOf(IllegalArgumentException.class)
                        .hasMessageContaining("read-only");
                    batches.next();
                    int dimensions = Memory.getInt(structure + 48);
                    Dlpack.delete(structure);
                    return dimensions;
                  }
                });
    assertThat(elements).containsExactly(3, 3);
  }

  /** Freeing it would crash the process of the reader. */
  @Test
  void memoryOfAnUnreturnedHostTensorStays() {
    List<Long> structures =
        feed(45)
            .lastBatch(LastBatch.KEEP)
            .train(
                task -> {
                  long structure = 0;
                  try (FeedBatches batches = task.batches(0)) {
                    while (batches.hasNext()) {
                      FeedBatch batch = batches.next();
                      if (structure == 0 && !batch.inPlace() && batch.rows() > 0) {
                        structure = batch.dlpack("group", DlpackForm.VERSIONED);
                      }
                    }
                  }
                  return structure;
                })
            .stream()
            .filter(structure -> structure != 0)
            .toList();
    assertThat(structures).isNotEmpty();
    for (long structure : structures) {
      int first = Memory.getInt(Memory.getLong(structure + 32));
      assertThat(first).as("the group of its first row").isBetween(0, 6);
      Dlpack.delete(structure);
    }
    assertThat(Dlpack.exported()).isZero();
  }

  /** Rows of 256 KiB. */
  private static Dataset<Row> wide(int rows) {
    return spark
        .session()
        .range(rows)
        .select(
            WeftTensors.column(
                functions.expr("array_repeat(cast(id as float), 65536)"),
                "wide",
                DataType.FLOAT32,
                65536));
  }

  @Test
  void batchThatIsLargerThanTheMemoryNamesTheSetting() throws Exception {
    try (StageAttempts attempts = new StageAttempts(spark.session().sparkContext())) {
      assertThatThrownBy(
              () ->
                  WeftFeed.shards(wide(64), 1)
                      .batchRows(40)
                      .train(task -> task.gpuBatches(0).next().rows()))
          .isInstanceOf(RankFailedException.class)
          .hasMessageContaining("rank 0 of feed")
          .hasMessageContaining("10.0 MiB of memory of")
          .hasMessageContaining("are more than spark.weft.gpu.memory=8m. Raise it");
      assertThat(attempts.repeated()).isEmpty();
    }
  }

  /** Each rank's rows fit, but both are in this executor. */
  @Test
  void anExportThatDoesNotFitFailsAtOnceWithWhatItNeeds() throws Exception {
    try (StageAttempts attempts = new StageAttempts(spark.session().sparkContext())) {
      assertThatThrownBy(
              () ->
                  wide(40)
                      .write()
                      .format("weft")
                      .mode("overwrite")
                      .option("ranks", "2")
                      .option("batchRows", "10")
                      .option("toGpus", "true")
                      .save(folder.resolve("features").toString()))
          .isInstanceOf(RankFailedException.class)
          .hasMessageContaining("and 1 more on its executor: 10.0 MiB of memory of")
          .hasMessageContaining("are more than spark.weft.gpu.memory=8m. Raise it");
      assertThat(attempts.repeated()).isEmpty();
    }
    Awaitility.await("the end of the ranks' memory")
        .atMost(Duration.ofSeconds(60))
        .until(() -> ExecutorGpu.current().open().memoryTaken() == 0);
  }

  @Test
  void feedWithoutTensorsIsRefused() {
    var texts = spark.session().range(20).selectExpr("concat('row ', id) text");
    assertThatThrownBy(() -> WeftFeed.shards(texts, 1).batchRows(5).exportToGpus())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no column of the feed is a number");
  }
}
