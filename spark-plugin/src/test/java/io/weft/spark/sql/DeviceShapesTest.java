package io.weft.spark.sql;

import static io.weft.spark.sql.TensorFacts.tensor;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.spark_partition_id;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.device.Event;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaMemory;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.TableColumn;
import io.weft.shuffle.device.TableLayout;
import io.weft.spark.GpuSpark;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.shuffle.WeftShuffleManager;
import io.weft.tensor.TensorType;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Declared shapes of functions and columns on a GPU, right and wrong ones. */
class DeviceShapesTest {
  private static final int ROWS = 2000;

  @RegisterExtension static final GpuSpark SPARK = new GpuSpark(Map.of());

  private static Dataset<Row> facts(int rows) {
    return TensorFacts.of(SPARK.local(), rows, 3);
  }

  private static Dataset<Row> shaped(long... shape) {
    return facts(ROWS).select(col("id"), tensor("f", DataType.FLOAT32, shape));
  }

  /** A table of the declared columns. Only the declaration has their shape. */
  private static DeviceTable zeros(DeviceTable batch, DeviceWork work) {
    TableLayout layout = work.layout(batch.rows(), new long[work.schema().size()]);
    CudaMemory memory = work.take(layout.bytes());
    Lane.Work clear = () -> work.lane().stream().clear(memory.address(), layout.bytes());
    Event cleared = work.lane().submit("zeros", clear, batch.ready());
    return DeviceTable.of(memory, layout, cleared);
  }

  /** Flattens tensors of the input; returns zeros for other columns. */
  private static DeviceTable flatOnes(DeviceTable batch, DeviceWork work) {
    boolean isFlat = batch.layout().columns().get(1).tensor().rank() == 1;
    return isFlat ? DeviceFunctions.copy(batch, work) : zeros(batch, work);
  }

  /** Number of rows by number of elements. */
  private static Map<Integer, Integer> lengths(Dataset<Row> rows) {
    Map<Integer, Integer> counts = new TreeMap<>();
    rows.collectAsList().forEach(row -> counts.merge(row.getList(1).size(), 1, Integer::sum));
    return counts;
  }

  /** The function and all Spark types are equal. */
  @Test
  void oneFunctionForTwoShapesInOneQuery() {
    DeviceFunction zeros = DeviceShapesTest::zeros;
    Dataset<Row> rows = shaped(2, 3);
    Dataset<Row> six = WeftGpu.mapBatches(rows, rows.schema(), zeros).repartition(4, col("id"));
    Dataset<Row> four =
        WeftGpu.mapBatches(rows, shaped(4).schema(), zeros).repartition(4, col("id"));
    assertThat(lengths(six.union(four))).isEqualTo(Map.of(6, ROWS, 4, ROWS));
    Dataset<Row> again =
        six.union(WeftGpu.mapBatches(rows, rows.schema(), zeros).repartition(4, col("id")));
    assertThat(lengths(again)).isEqualTo(Map.of(6, 2 * ROWS));
    assertThat(Plans.nodes(Plans.of(again), ReusedExchangeExec.class)).isNotEmpty();
  }

  @Test
  void oneFunctionForTwoShapesOfWhichOneIsCached() {
    DeviceFunction zeros = DeviceShapesTest::zeros;
    Dataset<Row> rows = shaped(2, 3);
    Dataset<Row> six = WeftGpu.mapBatches(rows, rows.schema(), zeros).cache();
    try {
      assertThat(lengths(six)).isEqualTo(Map.of(6, ROWS));
      assertThat(lengths(WeftGpu.mapBatches(rows, shaped(4).schema(), zeros)))
          .isEqualTo(Map.of(4, ROWS));
      Dataset<Row> same = WeftGpu.mapBatches(rows, rows.schema(), zeros);
      assertThat(Plans.nodes(Plans.of(same), InMemoryTableScanExec.class)).isNotEmpty();
    } finally {
      six.unpersist(true);
    }
  }

  @Test
  void oneFunctionThatIsGivenTwoShapes() {
    DeviceFunction flatOnes = DeviceShapesTest::flatOnes;
    Dataset<Row> flat = shaped(6);
    Dataset<Row> matrices =
        WeftGpu.mapBatches(shaped(2, 3), flat.schema(), flatOnes).repartition(4, col("id"));
    Dataset<Row> vectors =
        WeftGpu.mapBatches(flat, flat.schema(), flatOnes).repartition(4, col("id"));
    assertThat(matrices.union(vectors).where("id > 0").count()).isEqualTo(ROWS - 1);
    assertThat(vectors.union(matrices).where("id > 0").count()).isEqualTo(ROWS - 1);
  }

  /** Copies the rows. Fails unless x is a column of tensors. */
  private static DeviceTable checked(DeviceTable batch, DeviceWork work) {
    TableColumn column = batch.layout().columns().get(2);
    if (!TensorType.of(DataType.FLOAT32, 2, 3).equals(column.tensor())) {
      throw new IllegalArgumentException("the third column is " + column);
    }
    return DeviceFunctions.copy(batch, work);
  }

  @Test
  void functionsReadAndReturnTensors() {
    Dataset<Row> rows = facts(ROWS);
    List<String> expected = RowTexts.unordered(rows);
    Dataset<Row> straight = WeftGpu.mapBatches(rows, rows.schema(), DeviceShapesTest::checked);
    assertThat(RowTexts.unordered(straight)).isEqualTo(expected);
    Dataset<String> compiled = straight.withColumn("partition", spark_partition_id()).toJSON();
    assertThat(compiled.collectAsList()).hasSize(ROWS); // Its tasks have the plan.
    Dataset<Row> exchanged =
        WeftGpu.mapBatches(
                WeftGpu.onDevice(rows).repartition(4, col("k")),
                rows.schema(),
                DeviceShapesTest::checked)
            .repartition(3, col("id"));
    assertThat(RowTexts.unordered(exchanged)).isEqualTo(expected);
    assertThat(Plans.wefts(exchanged)).allMatch(WeftShuffleExchangeExec::isOnDevices);
  }

  @Test
  void aFunctionThatReturnsAnotherShapeFails() {
    Dataset<Row> rows = facts(10).select("f");
    Dataset<Row> other = facts(10).select(tensor("f", DataType.FLOAT32, 6));
    assertThatThrownBy(
            () -> WeftGpu.mapBatches(rows, other.schema(), DeviceFunctions::copy).collectAsList())
        .hasStackTraceContaining("column 0 of a table is float32[2, 3], but f is float32[6]");
  }

  /** In a union, Spark uses the metadata of the first input for the batches of both. */
  @Test
  void batchesOfAnotherShapeAreRebuilt() {
    Dataset<Row> rows = facts(ROWS).select("id", "f");
    Dataset<Row> flat = rows.select(col("id"), tensor("f", DataType.FLOAT32, 6));
    Dataset<Row> both = WeftGpu.onDevice(rows).union(WeftGpu.onDevice(flat));
    Dataset<Row> mapped = WeftGpu.mapBatches(both, rows.schema(), DeviceFunctions::copy);
    assertThat(RowTexts.unordered(mapped)).isEqualTo(RowTexts.unordered(rows.union(flat)));
  }

  /** Spark reuses an exchange for another one that differs only in metadata. */
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
        SPARK
            .local()
            .session()
            .range(0, 100, 1, 2)
            .selectExpr("id", "if(id = 57, %s, %s) x".formatted(value, right))
            .select(col("id"), tensor("x", DataType.FLOAT32, 3));
    assertThatThrownBy(() -> WeftGpu.onDevice(rows).repartition(3, col("id")).collectAsList())
        .hasStackTraceContaining("column x, uploaded row 7 of input partition 1: " + error);
  }

  @Test
  void columnsWithoutOneShapeStayOnTheHost() {
    Dataset<Row> rows = SPARK.local().session().range(100).selectExpr("id", "array(id) a");
    Dataset<Row> varies = rows.select(col("id"), tensor("a", DataType.INT64, -1, 1));
    Dataset<Row> other = rows.select(col("id"), tensor("a", DataType.FLOAT32, 1));
    Dataset<Row> huge =
        rows.selectExpr("id", "cast(null as binary) a")
            .select(col("id"), tensor("a", DataType.FLOAT64, 300_000_000));
    for (Dataset<Row> each : List.of(varies, other, huge)) {
      Dataset<Row> exchanged = WeftGpu.onDevice(each).repartition(3, col("id"));
      assertThat(RowTexts.unordered(exchanged)).isEqualTo(RowTexts.unordered(each));
      assertThat(Plans.nodes(Plans.of(exchanged), DeviceUploadExec.class)).isEmpty();
    }
    WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
    assertThat(manager.hostExchanges().counts())
        .containsKey(
            "column a is a tensor whose shape varies, [-1, 1], which a GPU table cannot hold")
        .containsKey(
            "column a is binary and says that it is of float64[300000000], which is 2400000000"
                + " bytes, which a GPU table cannot hold")
        .containsKey(
            "column a is array<bigint> and says that it is of float32[1], which a GPU table"
                + " cannot hold");
  }
}
