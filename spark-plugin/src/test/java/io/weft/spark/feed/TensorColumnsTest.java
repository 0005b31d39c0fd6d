package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.spark.LocalSpark;
import io.weft.spark.columns.VectorLikeUdt;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every kind of tensor column, element by element. */
class TensorColumnsTest {
  private static final int ROWS = 20;
  private static final byte SPARSE = 0;
  private static final byte DENSE = 1;

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of());
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  /** The bytes of a batch's tensor, which must have this type. */
  private static List<Byte> fed(Dataset<Row> rows, TensorType type) {
    List<ArrayList<Byte>> fed =
        WeftFeed.shards(rows, 1)
            .batchRows(ROWS)
            .train(
                task -> {
                  Tensor tensor = task.batches(0).next().tensor("x");
                  assertThat(tensor.type()).isEqualTo(type);
                  ArrayList<Byte> bytes = new ArrayList<>();
                  for (long i = 0; i < tensor.type().bytes(); i++) {
                    bytes.add(Memory.getByte(tensor.address() + i));
                  }
                  return bytes;
                });
    return fed.get(0);
  }

  /** The bits of float16 and bfloat16 are shorts. */
  private static String element(DataType dtype) {
    return switch (dtype) {
      case INT8 -> "tinyint";
      case INT16, FLOAT16, BFLOAT16 -> "smallint";
      case INT32 -> "int";
      case INT64 -> "bigint";
      case FLOAT32 -> "float";
      case FLOAT64 -> "double";
    };
  }

  private static void put(long address, DataType dtype, int value) {
    switch (dtype) {
      case INT8 -> Memory.putByte(address, (byte) value);
      case INT16, FLOAT16, BFLOAT16 -> Memory.putShort(address, (short) value);
      case INT32 -> Memory.putInt(address, value);
      case INT64 -> Memory.putLong(address, value);
      case FLOAT32 -> Memory.putFloat(address, value);
      case FLOAT64 -> Memory.putDouble(address, value);
    }
  }

  /** Row i holds i, i + 1, i + 2 and so on, in the element type. */
  @ParameterizedTest
  @EnumSource
  void arraysOfEveryTypeAreTensors(DataType dtype) {
    Column arrays =
        functions.expr(
            "transform(sequence(0, 5), i -> cast(id + i as %s))".formatted(element(dtype)));
    Dataset<Row> rows =
        spark.session().range(0, ROWS, 1, 1).select(WeftTensors.column(arrays, "x", dtype, 2, 3));
    try (Tensor expected = Tensor.allocate(TensorType.of(dtype, ROWS, 2, 3))) {
      List<Byte> bytes = new ArrayList<>();
      for (int i = 0; i < 6 * ROWS; i++) {
        put(expected.address() + (long) i * dtype.bytes(), dtype, i / 6 + i % 6);
      }
      for (long i = 0; i < expected.type().bytes(); i++) {
        bytes.add(Memory.getByte(expected.address() + i));
      }
      assertThat(fed(rows, expected.type())).isEqualTo(bytes);
    }
  }

  /** A value's bytes are its elements, for every type. */
  @ParameterizedTest
  @EnumSource
  void binaryValuesOfEveryTypeAreTensors(DataType dtype) {
    int bytes = 3 * dtype.bytes();
    Column values = functions.expr("unhex(repeat(lpad(hex(id), 2, '0'), %d))".formatted(bytes));
    Dataset<Row> rows =
        spark.session().range(0, ROWS, 1, 1).select(WeftTensors.column(values, "x", dtype, 3));
    List<Byte> fed = fed(rows, TensorType.of(dtype, ROWS, 3));
    for (int i = 0; i < ROWS * bytes; i++) {
      assertThat(fed.get(i)).isEqualTo((byte) (i / bytes));
    }
  }

  /** The same structure as vectors of Spark's machine learning library, which is not needed. */
  private static Dataset<Row> vectors(int sparse) {
    StructType schema =
        new StructType()
            .add("x", new VectorLikeUdt(), true, WeftTensors.metadata(DataType.FLOAT64, 2));
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < ROWS; i++) {
      GenericArrayData values = new GenericArrayData(new double[] {i, i + 0.5});
      boolean dense = i != sparse;
      rows.add(
          new GenericInternalRow(
              new Object[] {
                new GenericInternalRow(
                    new Object[] {
                      dense ? DENSE : SPARSE,
                      dense ? null : 2,
                      dense ? null : new GenericArrayData(new int[] {0, 1}),
                      values
                    })
              }));
    }
    return ((org.apache.spark.sql.classic.SparkSession) spark.session())
        .internalCreateDataFrame(
            new JavaSparkContext(spark.session().sparkContext()).parallelize(rows, 1).rdd(),
            schema,
            false);
  }

  @Test
  void denseVectorsAreTensors() {
    List<Byte> fed = fed(vectors(-1), TensorType.of(DataType.FLOAT64, ROWS, 2));
    try (Tensor expected = Tensor.allocate(TensorType.of(DataType.FLOAT64, ROWS, 2))) {
      for (int i = 0; i < ROWS; i++) {
        Memory.putDouble(expected.address() + 16L * i, i);
        Memory.putDouble(expected.address() + 16L * i + 8, i + 0.5);
      }
      for (int i = 0; i < fed.size(); i++) {
        assertThat(fed.get(i)).isEqualTo(Memory.getByte(expected.address() + i));
      }
    }
  }

  @Test
  void aSparseVectorIsNamedWithItsRow() {
    assertThatThrownBy(() -> WeftFeed.shards(vectors(13), 1).train(FeedTask::steps))
        .hasStackTraceContaining(
            "column x, row 13 of input partition 0: a sparse vector is not float64[2]");
  }

  /** Rows that are not UnsafeRows are counted by the shuffle buffer as well. */
  @Test
  void rowsOfEveryClassAreShuffled() {
    List<Integer> fed =
        WeftFeed.shards(vectors(-1), 1)
            .batchRows(ROWS)
            .shuffled(3)
            .train(
                task -> {
                  Tensor tensor = task.batches(0).next().tensor("x");
                  int sum = 0;
                  for (long i = 0; i < ROWS; i++) {
                    sum += (int) Memory.getDouble(tensor.address() + 16 * i);
                  }
                  return sum;
                });
    assertThat(fed).containsExactly(ROWS * (ROWS - 1) / 2);
  }
}
