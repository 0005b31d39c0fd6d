package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.FeedExchange.FeedCores;
import io.weft.spark.runtime.FeedCounters;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Feeds whose ranks are threads of this JVM. */
class WeftFeedTest {
  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of());
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  private static SparkSession session() {
    return spark.session();
  }

  private static List<Long> flat(List<ArrayList<List<Long>>> ranks) {
    List<Long> all = new ArrayList<>();
    ranks.forEach(rank -> rank.forEach(all::addAll));
    return all;
  }

  private static List<Long> range(long rows) {
    return LongStream.range(0, rows).boxed().toList();
  }

  @ParameterizedTest
  @CsvSource({"1000, 4, 2, 10", "1003, 4, 2, 10", "37, 5, 2, 8", "7, 3, 2, 1", "500, 3, 1, 64"})
  void everyRowIsFedOnceInFullBatches(long rows, int partitions, int ranks, int batchRows) {
    List<ArrayList<List<Long>>> fed =
        WeftFeed.shards(FeedData.rows(session(), rows, partitions), ranks)
            .batchRows(batchRows)
            .train(
                task -> {
                  assertThat(task.ranks()).isEqualTo(ranks);
                  ArrayList<List<Long>> batches = FeedData.epoch(task, 0);
                  assertThat((long) batches.size()).isEqualTo(task.steps());
                  assertThat(FeedData.epoch(task, 1)).isEqualTo(batches);
                  return batches;
                });
    assertThat(fed).hasSize(ranks);
    long steps = rows / batchRows / ranks;
    assertThat(fed).allSatisfy(batches -> assertThat(batches).hasSize((int) steps));
    assertThat(fed)
        .allSatisfy(
            batches -> assertThat(batches).allSatisfy(b -> assertThat(b).hasSize(batchRows)));
    assertThat(flat(fed))
        .doesNotHaveDuplicates()
        .hasSize((int) steps * batchRows * ranks)
        .isSubsetOf(range(rows));
  }

  @ParameterizedTest
  @CsvSource({"1003, 4, 10", "3, 2, 10", "1, 1, 5", "0, 2, 5", "64, 3, 16"})
  void withKeepEveryRowIsFedAndRanksTakeTheSameSteps(long rows, int partitions, int batchRows) {
    List<ArrayList<List<Long>>> fed =
        WeftFeed.shards(FeedData.rows(session(), rows, partitions), 2)
            .batchRows(batchRows)
            .lastBatch(LastBatch.KEEP)
            .train(task -> FeedData.epoch(task, 0));
    assertThat(flat(fed)).containsExactlyInAnyOrderElementsOf(range(rows));
    assertThat(fed.get(0)).hasSameSizeAs(fed.get(1));
  }

  @Test
  void dataWithoutPartitionsTakesNoSteps() {
    Dataset<Row> nothing = FeedData.rows(session(), 10, 2).limit(0);
    assertThat(WeftFeed.shards(nothing, 2).train(FeedTask::steps)).containsExactly(0L, 0L);
    assertThat(
            WeftFeed.shards(session().emptyDataFrame().withColumn("a", functions.lit(1)), 2)
                .lastBatch(LastBatch.KEEP)
                .train(FeedTask::steps))
        .containsExactly(0L, 0L);
  }

  /** 4 map tasks of 250 rows: each is 25 whole batches, without a remainder. */
  @Test
  void fullBatchesAreReadWhereTheirMapTasksWroteThem() {
    long gathered = FeedCounters.get(FeedCounter.BYTES_GATHERED);
    List<ArrayList<Long>> addresses =
        WeftFeed.shards(FeedData.rows(session(), 1000, 4), 2)
            .batchRows(10)
            .train(
                task -> {
                  ArrayList<Long> first = addresses(task, 0);
                  assertThat(addresses(task, 1)).isEqualTo(first);
                  return first;
                });
    assertThat(addresses).allSatisfy(rank -> assertThat(rank).hasSize(50));
    assertThat(addresses.stream().flatMap(List::stream)).doesNotHaveDuplicates();
    assertThat(FeedCounters.get(FeedCounter.BYTES_GATHERED)).isEqualTo(gathered);
  }

  private static ArrayList<Long> addresses(FeedTask task, int epoch) throws Exception {
    ArrayList<Long> addresses = new ArrayList<>();
    try (FeedBatches batches = task.batches(epoch)) {
      while (batches.hasNext()) {
        FeedBatch batch = batches.next();
        Tensor x = batch.tensor("x");
        assertThat(batch.inPlace()).isTrue();
        assertThat(x.type()).isEqualTo(TensorType.of(DataType.FLOAT32, 10, 2, 3));
        assertThat(x.address() % 64).isZero();
        assertThat(FeedData.isInMappedSegment(x.address())).isTrue();
        addresses.add(x.address());
      }
    }
    return addresses;
  }

  /** 3 map tasks with a remainder of 3 rows each, which make one batch of the size 9. */
  @Test
  void onlyRemaindersAreCopiedTogether() {
    long rows = FeedCounters.get(FeedCounter.ROWS_GATHERED);
    List<List<Boolean>> inPlace =
        WeftFeed.shards(FeedData.rows(session(), 3 * 12, 3), 1)
            .batchRows(9)
            .train(
                task -> {
                  List<Boolean> seen = new ArrayList<>();
                  task.batches(0).forEachRemaining(batch -> seen.add(batch.inPlace()));
                  return seen;
                });
    assertThat(inPlace).containsExactly(List.of(true, true, true, false));
    assertThat(FeedCounters.get(FeedCounter.ROWS_GATHERED) - rows).isEqualTo(9);
  }

  @Test
  void shuffledEpochsDifferAndRepeatWithTheSeed() {
    FeedFunction<ArrayList<ArrayList<List<Long>>>> epochs =
        task -> {
          ArrayList<ArrayList<List<Long>>> seen = new ArrayList<>();
          for (int epoch = 0; epoch < 3; epoch++) {
            seen.add(FeedData.epoch(task, epoch));
          }
          assertThat(FeedData.epoch(task, 1)).isEqualTo(seen.get(1));
          return seen;
        };
    WeftFeed feed = WeftFeed.shards(FeedData.rows(session(), 1000, 4), 2).batchRows(10);
    var first = feed.shuffled(17).train(epochs);
    assertThat(feed.shuffled(17).train(epochs)).isEqualTo(first);
    assertThat(feed.shuffled(18).train(epochs)).isNotEqualTo(first);
    for (ArrayList<ArrayList<List<Long>>> rank : first) {
      assertThat(rank.get(0)).isNotEqualTo(rank.get(1)).isNotEqualTo(rank.get(2));
      assertThat(rank.get(0)).containsExactlyInAnyOrderElementsOf(rank.get(1));
    }
    assertThat(flat(first.stream().map(rank -> rank.get(0)).toList()))
        .containsExactlyInAnyOrderElementsOf(range(1000));
    List<Long> batch = first.get(0).get(0).get(0);
    assertThat(batch).as("rows are mixed, too").isNotEqualTo(batch.stream().sorted().toList());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "group",
        "(IF(id % 2 = 0, 'KEY ', 'key ') || group) COLLATE UTF8_LCASE",
        "IF(group = 3, NULL, DECIMAL(group))"
      })
  void rowsOfAKeyGoToTheSameRank(String key) {
    Dataset<Row> rows =
        FeedData.rows(session(), 700, 3)
            .selectExpr("*", key + " AS key")
            .selectExpr("*", "STRUCT(key) AS pair");
    for (String by : List.of("key", "pair.key")) {
      List<ArrayList<Long>> groups =
          WeftFeed.shards(rows, 2)
              .batchRows(16)
              .by(by)
              .lastBatch(LastBatch.KEEP)
              .train(
                  task -> {
                    ArrayList<Long> seen = new ArrayList<>();
                    FeedData.epoch(task, 0).forEach(ids -> ids.forEach(id -> seen.add(id % 7)));
                    return seen;
                  });
      assertThat(groups.get(0).size() + groups.get(1).size()).isEqualTo(700);
      assertThat(groups.get(0)).doesNotContainAnyElementsOf(groups.get(1));
    }
  }

  /** Equal maps may have their entries in different orders, so Spark hashes no maps. */
  @Test
  void aMapIsNoKey() {
    Dataset<Row> rows = FeedData.rows(session(), 10, 1).selectExpr("id", "MAP(id, 1) AS pairs");
    assertThatThrownBy(() -> WeftFeed.shards(rows, 2).by("pairs").train(FeedTask::steps))
        .hasMessageContaining("HASH_MAP_TYPE");
  }

  @Test
  void ranksReduceTogetherAtEveryStep() {
    List<Long> sums =
        WeftFeed.shards(FeedData.rows(session(), 200, 3), 2)
            .batchRows(10)
            .train(
                task -> {
                  try (Tensor sum = Tensor.allocate(TensorType.of(DataType.INT64, 1));
                      FeedBatches batches = task.batches(0)) {
                    long total = 0;
                    while (batches.hasNext()) {
                      long mine =
                          FeedData.ids(batches.next()).stream().mapToLong(Long::longValue).sum();
                      sum.byteBuffer().putLong(0, mine);
                      task.communicator().allReduce(sum.buffer(), ReduceOp.SUM);
                      total += sum.byteBuffer().getLong(0);
                    }
                    return total;
                  }
                });
    assertThat(sums).containsOnly(199L * 200 / 2).hasSize(2);
  }

  @Test
  void aLeaseKeepsABatchAndNothingElseDoes() {
    List<Boolean> checked =
        WeftFeed.shards(FeedData.rows(session(), 60, 2), 1)
            .batchRows(10)
            .train(
                task -> {
                  try (FeedBatches batches = task.batches(0)) {
                    FeedBatch kept = batches.next();
                    List<Long> ids = FeedData.ids(kept);
                    try (FeedLease lease = kept.retain()) {
                      FeedBatch next = batches.next();
                      assertThat(FeedData.ids(kept)).isEqualTo(ids);
                      lease.close();
                      assertThatThrownBy(() -> kept.tensor("x")).hasMessageContaining("has ended");
                      assertThatThrownBy(kept::retain).hasMessageContaining("has ended");
                      assertThat(FeedData.ids(next)).isNotEqualTo(ids);
                    }
                    batches.close();
                    assertThat(batches.hasNext()).isFalse();
                  }
                  return true;
                });
    assertThat(checked).containsExactly(true);
  }

  /** A feed waits for one core per rank before it reports too few cores. */
  @Test
  void coresAreThoseOfTheApplicationsExecutors() {
    SparkContext context = session().sparkContext();
    assertThat(FeedCores.await(context, 2, Duration.ofDays(1))).isEmpty();
    assertThat(FeedCores.await(context, 3, Duration.ofMillis(100)).orElseThrow())
        .startsWith("A feed's 3 ranks run at the same time")
        .contains("can run 2 tasks");
  }

  @Test
  void memoryIsFreedWhenTrainingIsOver() {
    long before = LocalSpark.statistics().arena().usedBytes();
    assertThat(WeftFeed.shards(FeedData.rows(session(), 205, 2), 2).batchRows(10).train(t -> 1))
        .containsExactly(1, 1);
    Awaitility.await("memory of the feed")
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(
            () -> {
              assertThat(LocalSpark.statistics().arena().usedBytes()).isLessThanOrEqualTo(before);
              assertThat(LocalSpark.statistics().openReaders()).isZero();
            });
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "if(id = 13, array(1.0F), array(1.0F, 2.0F)) | shape [1] is not float32[2]",
        "if(id = 13, null, array(1.0F, 2.0F)) | null is not float32[2]",
        "if(id = 13, array(1.0F, null), array(1.0F, 2.0F)) | with a null at 1 is not float32[2]",
        "if(id = 13, X'00112233', X'0011223344556677') | shape [1] is not float32[2]",
        "if(id = 13, X'001122', X'0011223344556677') | 3 bytes is not float32[2]",
      })
  void aRowOfAnotherShapeIsNamed(String expression, String said) {
    Dataset<Row> rows =
        session()
            .range(0, 20, 1, 2)
            .select(WeftTensors.column(functions.expr(expression), "x", DataType.FLOAT32, 2));
    assertThatThrownBy(() -> WeftFeed.shards(rows, 1).train(FeedTask::steps))
        .hasStackTraceContaining("column x, row 3 of input partition 1: ")
        .hasStackTraceContaining(said);
  }

  @Test
  void invalidFeedsAreRejectedBeforeAnythingRuns() {
    Dataset<Row> rows = session().range(10).selectExpr("id", "cast(id as string) text", "id id2");
    assertThatThrownBy(() -> WeftFeed.shards(session().emptyDataFrame(), 1).train(t -> 1))
        .hasMessageContaining("at least one column");
    assertThatThrownBy(() -> WeftFeed.shards(rows.withColumnRenamed("id2", "id"), 1).train(t -> 1))
        .hasMessageContaining("two columns of a feed are called id");
    assertThatThrownBy(
            () ->
                WeftFeed.shards(rows.select(WeftTensors.column("text", DataType.FLOAT32, 2)), 1)
                    .train(t -> 1))
        .hasMessageContaining("column text: values of type string cannot be tensors of float32");
    assertThatThrownBy(() -> WeftFeed.shards(rows, 0)).hasMessageContaining("at least one rank");
    assertThatThrownBy(() -> WeftFeed.shards(rows, 1).batchRows(0))
        .hasMessageContaining("at least one row");
  }

  @Test
  void columnsWithoutTensorTypeAreNamed() {
    List<List<String>> said =
        WeftFeed.shards(FeedData.rows(session(), 20, 1), 1)
            .batchRows(10)
            .train(
                task -> {
                  FeedBatch batch = task.batches(0).next();
                  List<String> messages = new ArrayList<>();
                  for (String column : List.of("text", "nothing")) {
                    assertThatThrownBy(() -> batch.tensor(column))
                        .isInstanceOf(IllegalArgumentException.class)
                        .satisfies(e -> messages.add(e.getMessage()));
                  }
                  return messages;
                });
    assertThat(said.get(0))
        .containsExactly(
            "column text of type string is no number and has no tensor type: see WeftTensors",
            "the feed has no column nothing; its columns are [id, x, group, text]");
  }

  /** The bytes of binary values are the elements; a null among plain numbers is an error. */
  @Test
  void binaryValuesAreTensorsAndNullsAreErrors() {
    Dataset<Row> rows =
        session()
            .range(0, 8, 1, 1)
            .select(
                WeftTensors.column(
                    functions.expr("unhex(concat('0', id, '00', '0', id, '80'))"),
                    "b",
                    DataType.INT16,
                    2),
                functions.expr("if(id = 5, null, id)").as("n"));
    List<List<Short>> seen =
        WeftFeed.shards(rows, 1)
            .batchRows(8)
            .train(
                task -> {
                  FeedBatch batch = task.batches(0).next();
                  assertThatThrownBy(() -> batch.tensor("n"))
                      .hasMessage(
                          "column n, row 5 of the batch: null is not a value of tensor int64[]");
                  ByteBuffer bytes = batch.byteBuffer("b");
                  assertThat(bytes.isReadOnly()).isTrue();
                  assertThat(batch.tensor("b").type())
                      .isEqualTo(TensorType.of(DataType.INT16, 8, 2));
                  return Arrays.asList(bytes.getShort(12), bytes.getShort(14));
                });
    assertThat(seen).containsExactly(List.of((short) 3, (short) 0x8003));
  }
}
