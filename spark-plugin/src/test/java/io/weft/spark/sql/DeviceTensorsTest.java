package io.weft.spark.sql;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.spark_partition_id;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.buffer.DataType;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.FeedBatch;
import io.weft.spark.feed.FeedBatches;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.feed.WeftTensors;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.table.DeviceTable;
import io.weft.table.TableColumn;
import io.weft.tensor.TensorType;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tensor columns in batches on a GPU, held against Spark's own shuffle. */
class DeviceTensorsTest {
  private static final int ROWS = 2000;

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark =
        DoubleGpus.start(
            Map.of(
                "spark.weft.route", "auto",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false",
                "spark.sql.autoBroadcastJoinThreshold", "-1",
                "spark.sql.execution.rangeExchange.sampleSizePerPartition", "10000",
                "spark.weft.gpu.exchangeMemory", "16m",
                "spark.weft.gpu.pinnedMemory", "4m"));
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      var catalog = device().catalog();
      catalog.keys().forEach(key -> catalog.removeShuffle(key.shuffleId()));
      Awaitility.await("no memory of tasks on the device")
          .atMost(Duration.ofSeconds(60))
          .until(() -> device().tiers().memory().takenBytes() == 0);
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

  private static Column tensor(String name, DataType dtype, long... shape) {
    return WeftTensors.column(name, dtype, shape);
  }

  /** A tensor of every type, some with nulls, beside columns that are none. */
  private static Dataset<Row> facts(int rows) {
    return facts(rows, 3);
  }

  private static Dataset<Row> facts(int rows, int partitions) {
    return spark
        .session()
        .range(0, rows, 1, partitions)
        .selectExpr(
            "id",
            "if(id % 13 = 0, null, concat('key ', id % 211)) k",
            "transform(sequence(0, 5), i -> cast(id + i as float)) f",
            "if(id % 3 = 0, null, transform(sequence(0, 2), i -> id * i / 7.0d)) d",
            "transform(sequence(0, 4), i -> cast((id + i) % 100 as tinyint)) b",
            "if(id % 5 = 0, null, transform(sequence(0, 6), i -> cast(id * i as smallint))) half",
            "transform(sequence(0, 0), i -> cast(-id as int)) one",
            "if(id % 7 < 5, null, transform(sequence(0, 3), i -> id * 1000000007 + i)) l",
            "if(id % 11 = 0, null, unhex(lpad(hex(id), 12, '0'))) bytes",
            "cast(null as array<float>) never")
        .select(
            col("id"),
            col("k"),
            tensor("f", DataType.FLOAT32, 2, 3),
            tensor("d", DataType.FLOAT64, 3),
            tensor("b", DataType.INT8, 5),
            tensor("half", DataType.FLOAT16, 7),
            tensor("one", DataType.INT32, 1),
            tensor("l", DataType.INT64, 2, 2),
            tensor("bytes", DataType.INT16, 3),
            tensor("never", DataType.FLOAT32, 9));
  }

  private static List<String> texts(Dataset<Row> rows) {
    return RowTexts.unordered(rows.withColumn("partition", spark_partition_id()));
  }

  private static Dataset<Row> assertSame(
      UnaryOperator<Dataset<Row>> query, Dataset<Row> rows, boolean batchesExpected) {
    List<String> expected =
        spark.withSortShuffle(session -> texts(query.apply(WeftGpu.onDevice(rows))));
    Dataset<Row> ours =
        query.apply(WeftGpu.onDevice(rows)).withColumn("partition", spark_partition_id());
    assertThat(RowTexts.unordered(ours)).isEqualTo(expected);
    List<WeftShuffleExchangeExec> exchanges = Plans.wefts(ours);
    assertThat(exchanges).isNotEmpty();
    for (WeftShuffleExchangeExec each : exchanges) {
      assertThat(each.simpleString(2000)).contains("blocks on GPUs");
      assertThat(each.metrics().apply(ExchangeMetrics.DEVICE_TABLES_READ).value() > 0)
          .isEqualTo(batchesExpected);
    }
    return ours;
  }

  /** Tensors themselves are no keys of the device: their partitions come from the host. */
  @ParameterizedTest
  @ValueSource(strings = {"id", "k", "f", "d", "bytes", "never"})
  void everyTypeTravels(String key) {
    assertSame(rows -> rows.repartition(7, col(key), col("id")), facts(ROWS), true);
  }

  @Test
  void otherPartitionings() {
    assertSame(rows -> rows.repartition(1), facts(ROWS), true);
    assertSame(rows -> rows.repartitionByRange(4, col("k"), col("id").desc()), facts(ROWS), true);
    assertSame(rows -> rows.repartition(500, col("k")), facts(ROWS), true);
  }

  @Test
  void fewRowsAndNone() {
    assertSame(rows -> rows.repartition(40, col("id")), facts(1), true);
    assertSame(rows -> rows.repartition(3, col("id")), facts(ROWS).where("id < 0"), false);
  }

  @Test
  void fromExchangeToExchange() {
    Dataset<Row> twice =
        assertSame(
            rows -> WeftGpu.onDevice(rows.repartition(5, col("k"))).repartition(3, col("id")),
            facts(ROWS),
            true);
    assertThat(Plans.wefts(twice)).hasSize(2);
  }

  @Test
  void smallTablesOfManyMapTasks() {
    Dataset<Row> read = assertSame(rows -> rows.repartition(2, col("k")), facts(ROWS, 150), true);
    assertThat(Plans.wefts(read).get(0).metrics().apply(ExchangeMetrics.DEVICE_TABLES_READ).value())
        .isEqualTo(2);
  }

  @Test
  void readsThatAdaptiveExecutionArranges() {
    Dataset<Row> coalesced = assertSame(rows -> rows.repartition(col("k")), facts(ROWS), true);
    assertThat(Plans.nodes(Plans.of(coalesced), AQEShuffleReadExec.class)).isNotEmpty();
    Dataset<Row> keys = spark.session().range(0, ROWS, 3, 2).toDF();
    assertSame(rows -> rows.join(WeftGpu.onDevice(keys), "id"), facts(ROWS), true);
    spark.session().conf().set("spark.sql.adaptive.autoBroadcastJoinThreshold", "10m");
    try {
      assertSame(rows -> rows.join(WeftGpu.onDevice(keys), "id"), facts(ROWS), true);
    } finally {
      spark.session().conf().unset("spark.sql.adaptive.autoBroadcastJoinThreshold");
    }
  }

  /** Some 40 MB of values, and as much of nulls, on a device with room for 16. */
  @ParameterizedTest
  @ValueSource(strings = {"false", "id % 1000 > 0"})
  void moreThanTheDeviceHolds(String isNull) {
    Dataset<Row> wide =
        spark
            .session()
            .range(0, 5000, 1, 4)
            .selectExpr(
                "id", "if(%s, null, array_repeat(cast(id as float), 2048)) x".formatted(isNull))
            .select(col("id"), tensor("x", DataType.FLOAT32, 2048));
    String[] sums = {"sum(hash(id, x)) h", "count(x) n", "count(distinct id) ids"};
    long before = device().tiers().spilledBytes();
    List<Row> expected = wide.selectExpr(sums).collectAsList();
    assertThat(WeftGpu.onDevice(wide).repartition(8, col("id")).selectExpr(sums).collectAsList())
        .isEqualTo(expected);
    assertThat(device().tiers().spilledBytes()).isGreaterThan(before);
  }

  /** The same rows elsewhere; fails unless x is a column of tensors. */
  private static DeviceTable checked(DeviceTable batch, DeviceWork work) {
    TableColumn column = batch.layout().columns().get(2);
    if (!TensorType.of(DataType.FLOAT32, 2, 3).equals(column.tensor())) {
      throw new IllegalArgumentException("the third column is " + column);
    }
    return DeviceFunctions.copy(batch, work);
  }

  @Test
  void functionsGetAndMakeTensors() {
    Dataset<Row> rows = facts(ROWS);
    List<String> expected = RowTexts.unordered(rows);
    Dataset<Row> straight = WeftGpu.mapBatches(rows, rows.schema(), DeviceTensorsTest::checked);
    assertThat(RowTexts.unordered(straight)).isEqualTo(expected);
    Dataset<Row> exchanged =
        WeftGpu.mapBatches(
                WeftGpu.onDevice(rows).repartition(4, col("k")),
                rows.schema(),
                DeviceTensorsTest::checked)
            .repartition(3, col("id"));
    assertThat(RowTexts.unordered(exchanged)).isEqualTo(expected);
    assertThat(Plans.wefts(exchanged)).allMatch(WeftShuffleExchangeExec::isOnDevices);
  }

  @Test
  void aFunctionThatMakesAnotherShapeFails() {
    Dataset<Row> rows = facts(10).select("f");
    Dataset<Row> other = facts(10).select(tensor("f", DataType.FLOAT32, 6));
    assertThatThrownBy(
            () -> WeftGpu.mapBatches(rows, other.schema(), DeviceFunctions::copy).collectAsList())
        .hasStackTraceContaining("column 0 of a table is float32[2, 3], but f is float32[6]");
  }

  /** Of a union Spark takes the metadata of the first, and gives the batches of both. */
  @Test
  void batchesOfAnotherShapeAreMadeAnew() {
    Dataset<Row> rows = facts(ROWS).select("id", "f");
    Dataset<Row> flat = rows.select(col("id"), tensor("f", DataType.FLOAT32, 6));
    Dataset<Row> both = WeftGpu.onDevice(rows).union(WeftGpu.onDevice(flat));
    Dataset<Row> mapped = WeftGpu.mapBatches(both, rows.schema(), DeviceFunctions::copy);
    assertThat(RowTexts.unordered(mapped)).isEqualTo(RowTexts.unordered(rows.union(flat)));
  }

  /** To Spark two exchanges are one where they differ in metadata only. */
  @Test
  void anExchangeThatIsReusedForAnotherShape() {
    Dataset<Row> rows = facts(ROWS).select("id", "f");
    Dataset<Row> flat = rows.select(col("id"), tensor("f", DataType.FLOAT32, 6));
    UnaryOperator<Dataset<Row>> exchanged =
        each -> WeftGpu.onDevice(each).repartition(4, col("id"));
    Dataset<Row> both =
        WeftGpu.mapBatches(exchanged.apply(rows), rows.schema(), DeviceFunctions::copy)
            .union(
                WeftGpu.mapBatches(exchanged.apply(flat), flat.schema(), DeviceFunctions::copy)
                    .repartition(3, col("id")));
    assertThat(RowTexts.unordered(both)).isEqualTo(RowTexts.unordered(rows.union(flat)));
    assertThat(Plans.nodes(Plans.of(both), ReusedExchangeExec.class)).isNotEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "transform(sequence(0, 5), i -> cast(i as float))|shape [6] is not float32[3]",
        "array(1f, null, 2f)|shape [3] with a null at 1 is not float32[3]",
        "unhex('0011')|2 bytes is not float32[3]",
        "unhex('00112233')|shape [1] is not float32[3]"
      })
  void aValueOfAnotherShapeFailsWithItsRow(String value, String error) {
    boolean isBinary = value.startsWith("unhex");
    String right = isBinary ? "unhex('000000000000000000000000')" : "array(1f, 2f, 3f)";
    Dataset<Row> rows =
        spark
            .session()
            .range(0, 100, 1, 2)
            .selectExpr("id", "if(id = 57, %s, %s) x".formatted(value, right))
            .select(col("id"), tensor("x", DataType.FLOAT32, 3));
    assertThatThrownBy(() -> WeftGpu.onDevice(rows).repartition(3, col("id")).collectAsList())
        .hasStackTraceContaining("column x, row 7 of input partition 1: " + error);
  }

  @Test
  void whatIsNoTensorOfOneShapeStaysOnTheHost() {
    Dataset<Row> rows = spark.session().range(100).selectExpr("id", "array(id) a");
    Dataset<Row> varies = rows.select(col("id"), tensor("a", DataType.INT64, -1, 1));
    Dataset<Row> other = rows.select(col("id"), tensor("a", DataType.FLOAT32, 1));
    for (Dataset<Row> each : List.of(varies, other)) {
      Dataset<Row> exchanged = WeftGpu.onDevice(each).repartition(3, col("id"));
      assertThat(RowTexts.unordered(exchanged)).isEqualTo(RowTexts.unordered(each));
      assertThat(Plans.nodes(Plans.of(exchanged), DeviceUploadExec.class)).isEmpty();
    }
    WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
    assertThat(manager.hostExchanges().counts())
        .containsKey(
            "column a is a tensor whose shape varies, [-1, 1], which has no place in a table of a"
                + " GPU")
        .containsKey(
            "column a is array<bigint> and says that it is of float32[1], which has no place in a"
                + " table of a GPU");
  }

  @Test
  void aFeedTakesThem() {
    Dataset<Row> rows = facts(100).select("id", "f");
    List<ArrayList<Long>> fed =
        WeftFeed.shards(WeftGpu.onDevice(rows).repartition(3, col("id")), 2)
            .batchRows(10)
            .train(
                task -> {
                  ArrayList<Long> ids = new ArrayList<>();
                  try (FeedBatches batches = task.batches(0)) {
                    while (batches.hasNext()) {
                      FeedBatch batch = batches.next();
                      for (int row = 0; row < batch.rows(); row++) {
                        long id = batch.byteBuffer("id").getLong(8 * row);
                        assertThat(batch.byteBuffer("f").getFloat(24 * row + 20)).isEqualTo(id + 5);
                        ids.add(id);
                      }
                    }
                  }
                  return ids;
                });
    List<Long> all = new ArrayList<>();
    fed.forEach(all::addAll);
    Collections.sort(all);
    assertThat(all).isEqualTo(LongStream.range(0, 100).boxed().toList());
  }
}
