package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.Memory;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.runtime.FeedCounters;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import io.weft.tensor.dlpack.Dlpack;
import io.weft.tensor.dlpack.DlpackForm;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Feeds whose rows are split and read on the device, compared with the same feeds on the host. */
class GpuExchangeTest {
  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark =
        DoubleGpus.start(
            Map.of("spark.weft.gpu.exchangeMemory", "16m", "spark.weft.gpu.pinnedMemory", "4m"));
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  /** The blocks of a feed are freed with it, in the background. */
  @AfterEach
  void noRuleIsBrokenAndNoBlockIsLeft() {
    assertThat(DoubleGpus.violations()).isEmpty();
    Awaitility.await("no block on the device")
        .atMost(Duration.ofSeconds(60))
        .until(() -> ExecutorGpu.current().exchange().catalog().keys().isEmpty());
    Awaitility.await("no memory taken on the device")
        .atMost(Duration.ofSeconds(60))
        .until(() -> ExecutorGpu.current().exchange().tiers().memory().takenBytes() == 0);
    Awaitility.await("no memory of the device's pool taken")
        .atMost(Duration.ofSeconds(60))
        .until(() -> ExecutorGpu.current().open().memoryTaken() == 0);
  }

  private static WeftFeed feed(int rows) {
    return WeftFeed.shards(FeedData.rows(spark.session(), rows, 3), 2).batchRows(10);
  }

  /** Verifies that every batch of every rank has the same rows both ways. */
  static ArrayList<List<Long>> onDevice(FeedTask task) {
    ArrayList<List<Long>> ids = new ArrayList<>();
    try (GpuDownload download = new GpuDownload()) {
      for (int epoch = 0; epoch < 2; epoch++) {
        try (GpuFeedBatches batches = task.gpuBatches(epoch)) {
          while (batches.hasNext()) {
            ids.add(download.ids(batches.next()));
          }
        }
      }
    }
    return ids;
  }

  static ArrayList<List<Long>> onHost(FeedTask task) {
    ArrayList<List<Long>> ids = FeedData.epoch(task, 0);
    ids.addAll(FeedData.epoch(task, 1));
    return ids;
  }

  /** Every batch of every rank has the same rows both ways. */
  private static void assertSame(WeftFeed feed) {
    List<ArrayList<List<Long>>> expected = feed.train(GpuExchangeTest::onHost);
    long uploaded = FeedCounters.get(FeedCounter.GPU_BATCHES);
    List<ArrayList<List<Long>>> found = feed.onGpus().train(GpuExchangeTest::onDevice);
    assertThat(found).isEqualTo(expected);
    assertThat(FeedCounters.get(FeedCounter.GPU_BATCHES)).isEqualTo(uploaded);
  }

  @Test
  void evenlyDealtRowsEqualThoseOfTheHost() {
    long gathered = FeedCounters.get(FeedCounter.BATCHES_GATHERED);
    assertSame(feed(400));
    assertSame(feed(400).shuffled(3));
    assertThat(FeedCounters.get(FeedCounter.BATCHES_GATHERED) - gathered)
        .as("of remainders only")
        .isLessThanOrEqualTo(8);
  }

  @Test
  void remaindersAreCombinedOnTheDevice() {
    assertSame(feed(205).lastBatch(LastBatch.KEEP));
    assertSame(feed(7));
    assertSame(feed(7).lastBatch(LastBatch.KEEP));
  }

  /** A number is hashed on the device; for other keys Spark computes the rank. */
  @Test
  void rowsOfAKeyGoWhereSparksHashSendsThem() {
    assertSame(feed(300).by("group"));
    assertSame(feed(300).by("group", "id").lastBatch(LastBatch.KEEP));
    assertSame(feed(300).by("text").lastBatch(LastBatch.KEEP));
  }

  /**
   * 15 MB of blocks, on a device with room for 16 MB, with the memory of their making: some are
   * spilled to pinned memory and to the arena.
   */
  @Test
  void blocksThatDoNotFitAreSpilledAndComeBack() {
    var wide =
        spark
            .session()
            .range(0, 224, 1, 8)
            .select(
                org.apache.spark.sql.functions.col("id"),
                WeftTensors.column(
                    org.apache.spark.sql.functions.expr("array_repeat(cast(id as float), 16384)"),
                    "wide",
                    io.weft.collectives.DataType.FLOAT32,
                    16384));
    long before = ExecutorGpu.current().exchange().tiers().spilledBytes();
    List<Long> sums =
        WeftFeed.shards(wide, 2)
            .batchRows(8)
            .onGpus()
            .train(
                task -> {
                  long sum = 0;
                  try (GpuDownload download = new GpuDownload();
                      GpuFeedBatches batches = task.gpuBatches(0)) {
                    while (batches.hasNext()) {
                      GpuFeedBatch batch = batches.next();
                      var ids = download.bytes(batch.tensor("id"));
                      var values = download.bytes(batch.tensor("wide"));
                      for (int row = 0; row < batch.rows(); row++) {
                        if (values.getFloat(4 * (16384 * row + 77)) != ids.getLong(8 * row)) {
                          throw new AssertionError("row " + ids.getLong(8 * row));
                        }
                        sum += ids.getLong(8 * row);
                      }
                      batch.usedOn(download.stream());
                    }
                  }
                  return sum;
                });
    assertThat(sums.stream().mapToLong(Long::longValue).sum()).isEqualTo(224L * 223 / 2);
    assertThat(ExecutorGpu.current().exchange().tiers().spilledBytes()).isGreaterThan(before);
  }

  @Test
  void exportsByDlpackKeepTheirBlocks() {
    List<Long> structures =
        feed(40)
            .onGpus()
            .train(
                task -> {
                  GpuFeedBatch batch = task.gpuBatches(0).next();
                  long structure = batch.dlpack("x", DlpackForm.VERSIONED);
                  assertThat(Memory.getLong(structure + 24)).as("read-only").isEqualTo(1);
                  return structure;
                });
    assertThat(ExecutorGpu.current().exchange().tiers().memory().takenBytes()).isPositive();
    structures.forEach(Dlpack::delete);
  }
}
