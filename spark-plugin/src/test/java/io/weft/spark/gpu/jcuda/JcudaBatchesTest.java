package io.weft.spark.gpu.jcuda;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.shuffle.device.DeviceCatalog;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.WeftTensors;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.sql.WeftGpu;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import jcuda.Pointer;
import jcuda.Sizeof;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUfunction;
import jcuda.driver.CUresult;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Functions with JCuda on batches of queries, compared with the same query on the host. */
class JcudaBatchesTest {
  private static final int ROWS = 3000;
  private static final int THREADS = 256;
  private static final long[] SHAPE = {2, 2};

  /** Every type that a batch may have, with nulls, and numbers without. */
  private static final List<String> COLUMNS =
      List.of(
          "id",
          "if(id % 13 = 0, null, cast(id * 7919 % 211 as int)) k",
          "if(id % 7 = 0, null, cast(id % 100 as tinyint)) g",
          "cast(id % 3000 as smallint) sh",
          "if(id % 11 = 0, null, repeat(concat('x', id % 97), cast(id % 5 as int))) s",
          "cast(id * 1.25 as decimal(12,2)) d",
          "if(id % 3 = 0, null, cast(id as decimal(30,6)) * -1000003) big",
          "if(id % 17 = 0, null, cast(id as float) / 3) f",
          "if(id % 5 = 0, -0.0d, id * 0.5d) x",
          "if(id % 23 = 0, null, id % 3 = 0) b",
          "date_add(date'2020-01-01', cast(id % 1000 as int)) dt",
          "timestamp_micros(1600000000000000 + id * 12345) ts",
          "timestamp_ntz'2021-05-05 05:05:05' + make_interval(0, 0, 0, 0, 0, 0, id) ntz",
          "if(id % 29 = 0, null, unhex(hex(id))) bin",
          "cast(null as string) nothing",
          "'' blank",
          "if(id % 19 = 0, null, array(cast(id as float), 2f, 3f, -4f)) t");

  /** The work of a call that has ended. */
  private static volatile JcudaWork kept;

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark =
        DoubleGpus.start(
            Map.of(
                "spark.weft.route", "auto",
                "spark.sql.shuffle.orderIndependentChecksum.enabled", "false",
                "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false",
                "spark.weft.gpu.exchangeMemory", "16m",
                "spark.weft.gpu.pinnedMemory", "4m"));
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      awaitNoMemory();
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  @AfterEach
  void noRuleIsBroken() {
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  /** Blocks of earlier shuffles stay until the driver collects garbage, so they are removed. */
  private static void awaitNoMemory() {
    DeviceCatalog catalog = device().catalog();
    catalog.keys().forEach(key -> catalog.removeShuffle(key.shuffleId()));
    Awaitility.await("no memory of tasks on the device")
        .atMost(Duration.ofSeconds(60))
        .until(() -> device().tiers().memory().takenBytes() == 0);
  }

  private static DeviceExchange device() {
    return ExecutorGpu.current().exchange();
  }

  private static Dataset<Row> facts(List<String> columns, int rows, int tasks) {
    Dataset<Row> made =
        spark.session().range(0, rows, 1, tasks).selectExpr(columns.toArray(String[]::new));
    boolean hasTensors = List.of(made.columns()).contains("t");
    return hasTensors
        ? made.withColumn("t", WeftTensors.column(col("t"), "t", DataType.FLOAT32, SHAPE))
        : made;
  }

  private static Dataset<Row> facts() {
    return facts(COLUMNS, ROWS, 3);
  }

  private static List<String> texts(Dataset<Row> rows) {
    return rows
        .selectExpr("to_json(struct(*), map('ignoreNullFields', 'false'))")
        .as(Encoders.STRING())
        .collectAsList()
        .stream()
        .sorted()
        .toList();
  }

  private static Dataset<Row> mapped(Dataset<Row> rows, StructType schema, JcudaFunction function) {
    return WeftGpu.mapBatches(rows, schema, JcudaBatches.function(rows.schema(), function));
  }

  private static Dataset<Row> mapped(Dataset<Row> rows, JcudaFunction function) {
    return mapped(rows, rows.schema(), function);
  }

  @Test
  void everyTypeIsSeenAndComesBack() {
    assertThat(texts(mapped(facts(), (batch, work) -> batch))).isEqualTo(texts(facts()));
  }

  /** Random columns and numbers of rows; each batch of the second function is part of a table. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6})
  void whatAFunctionGetsItGivesBack(long seed) {
    Random random = new Random(seed);
    List<String> columns = new ArrayList<>(COLUMNS);
    Collections.shuffle(columns, random);
    columns = columns.subList(0, 1 + random.nextInt(6));
    int rows = random.nextInt(1 << random.nextInt(11));
    int parts = 1 + random.nextInt(5);
    Dataset<Row> rowsOnHost = facts(columns, rows, 1 + random.nextInt(3));
    Dataset<Row> first = mapped(WeftGpu.onDevice(rowsOnHost), (batch, work) -> batch);
    Dataset<Row> second = mapped(first.repartition(parts), (batch, work) -> batch);
    assertThat(texts(second)).as(rows + " rows of " + columns).isEqualTo(texts(rowsOnHost));
  }

  /** After an exchange by keys, the batches of a reader are partitions that begin anywhere. */
  @Test
  void partsOfTablesMoveFromGpuToGpu() {
    Dataset<Row> spread = WeftGpu.onDevice(facts()).repartition(5, col("k"));
    Dataset<Row> made = mapped(spread, (batch, work) -> batch).repartition(3, col("s"));
    assertThat(texts(mapped(made, (batch, work) -> batch))).isEqualTo(texts(facts()));
  }

  private static String ptx() {
    try (InputStream in =
        JcudaBatchesTest.class.getResourceAsStream("/io/weft/examples/etl/features.ptx")) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A kernel of the program between two columns with nulls and the tensors that it makes. */
  private static JcudaTable features(JcudaTable batch, JcudaWork work) {
    CUcontext context = new CUcontext();
    succeed(JCudaDriver.cuCtxGetCurrent(context));
    assertThat(context).as("the current context").isNotEqualTo(new CUcontext());
    CUfunction kernel = work.kernel(ptx(), "features");
    long bytes = 2L * Sizeof.FLOAT * batch.rows();
    CUdeviceptr to = work.take(bytes);
    for (int c = 0; c < 2; c++) {
      CUdeviceptr validity = batch.column(c).validity();
      Pointer arguments =
          Pointer.to(
              Pointer.to(to),
              Pointer.to(batch.column(c).data()),
              Pointer.to(validity == null ? new CUdeviceptr() : validity),
              Pointer.to(new long[] {batch.rows()}),
              Pointer.to(new long[] {2}),
              Pointer.to(new long[] {c}),
              Pointer.to(new double[] {10}),
              Pointer.to(new double[] {0.5}));
      int blocks = (batch.rows() + THREADS - 1) / THREADS;
      succeed(
          JCudaDriver.cuLaunchKernel(
              kernel, blocks, 1, 1, THREADS, 1, 1, 0, work.stream(), arguments, null));
    }
    return JcudaTable.of(batch.rows(), JcudaColumn.of(to, bytes));
  }

  private static void succeed(int result) {
    assertThat(result).as(() -> CUresult.stringFor(result)).isEqualTo(CUresult.CUDA_SUCCESS);
  }

  @Test
  void aKernelOfTheProgram() {
    Dataset<Row> rows =
        facts().selectExpr("if(k is null, null, cast(k as double)) a", "x").repartition(2);
    String feature = "cast(nvl((%s - 10) * 0.5, 0) as float)";
    Dataset<Row> expected =
        rows.selectExpr("array(%s, %s) t".formatted(feature, feature).formatted("a", "x"))
            .withColumn("t", WeftTensors.column(col("t"), "t", DataType.FLOAT32, 2));
    Dataset<Row> made = mapped(rows, expected.schema(), JcudaBatchesTest::features);
    assertThat(texts(made)).isEqualTo(texts(expected)).hasSize(ROWS);
  }

  /** Strings and validity bits in memory that the function asks for; another stream in between. */
  @Test
  void columnsInMemoryOnRequest() {
    StructType schema =
        new StructType().add("s", DataTypes.StringType).add("n", DataTypes.ByteType, true);
    JcudaFunction function =
        (batch, work) -> {
          int rows = batch.rows();
          int[] ends = IntStream.rangeClosed(0, rows).map(i -> 2 * i).toArray();
          CUdeviceptr offsets = work.take(Sizeof.INT * (rows + 1L));
          CUdeviceptr text = work.take(2L * rows);
          CUdeviceptr bits = work.take((rows + 7) / 8);
          CUdeviceptr values = work.take(rows + 1L);
          CUstream own = new CUstream();
          succeed(JCudaDriver.cuStreamCreate(own, 1));
          succeed(JCudaDriver.cuMemsetD8Async(text, (byte) 'w', 2L * rows, own));
          succeed(JCudaDriver.cuStreamSynchronize(own));
          succeed(JCudaDriver.cuStreamDestroy(own));
          long length = Sizeof.INT * (rows + 1L);
          succeed(JCudaDriver.cuMemcpyHtoDAsync(offsets, Pointer.to(ends), length, work.stream()));
          succeed(JCudaDriver.cuMemsetD8Async(bits, (byte) 0x55, (rows + 7) / 8, work.stream()));
          succeed(JCudaDriver.cuMemsetD8Async(values, (byte) 7, rows + 1L, work.stream()));
          return JcudaTable.of(
              rows,
              JcudaColumn.ofStrings(offsets, text, 2L * rows),
              JcudaColumn.of(values.withByteOffset(1), rows).withValidity(bits));
        };
    Dataset<Row> made = mapped(facts().coalesce(1).limit(8), schema, function);
    List<String> texts = texts(made);
    assertThat(texts.subList(0, 4)).containsOnly("{\"s\":\"ww\",\"n\":7}");
    assertThat(texts.subList(4, 8)).containsOnly("{\"s\":\"ww\",\"n\":null}");
  }

  /** Tables without rows, as input and as result; strings without rows need no offsets. */
  @Test
  void noRows() {
    StructType schema = new StructType().add("s", DataTypes.StringType);
    JcudaFunction none =
        (batch, work) -> JcudaTable.of(0, JcudaColumn.of(batch.column(0).data(), 0));
    Dataset<Row> made = mapped(facts(), schema, none);
    assertThat(texts(made)).isEmpty();
    assertThat(texts(mapped(made.repartition(2), (batch, work) -> batch))).isEmpty();
  }

  @Test
  void aFunctionThatFails() {
    JcudaFunction failing =
        (batch, work) -> {
          CUdeviceptr memory = work.take(1000);
          succeed(JCudaDriver.cuMemsetD8Async(memory, (byte) 1, 1000, work.stream()));
          throw new IOException("no more of " + batch.columns().size() + " columns");
        };
    assertRefused(facts().schema(), failing, "no more of 17 columns");
    assertRefused(facts().schema(), (batch, work) -> null, "returned no table");
    awaitNoMemory();
  }

  @Test
  void tablesThatAreNotAsDeclared() {
    StructType one = new StructType().add("it", DataTypes.IntegerType, false);
    StructType text = new StructType().add("it", DataTypes.StringType);
    assertRefused(
        one, (batch, work) -> batch, "a table of 17 columns; declared are 1: struct<it:int>");
    assertRefused(one, only(0), "column it (int) of a table that a function with JCuda made: ");
    assertRefused(one, only(0), " bytes, not ");
    assertRefused(one, only(1), "it has validity bits, and is declared without nulls");
    assertRefused(one, only(4), "it has validity bits");
    assertRefused(text, only(0), "it has no offsets");
    assertRefused(
        one,
        (batch, work) -> JcudaTable.of(-1, JcudaColumn.of(batch.column(3).data(), 0)),
        "a table of -1 rows");
  }

  @Test
  void stringsOutsideOfTheirBytes() {
    StructType text = new StructType().add("it", DataTypes.StringType);
    JcudaFunction garbage =
        (batch, work) -> {
          long length = Sizeof.INT * (batch.rows() + 1L);
          CUdeviceptr offsets = work.take(length);
          succeed(JCudaDriver.cuMemsetD8Async(offsets, (byte) 0x7f, length, work.stream()));
          return JcudaTable.of(
              batch.rows(), JcudaColumn.ofStrings(offsets, work.take(batch.rows()), batch.rows()));
        };
    assertRefused(text, garbage, "the function that made this batch gave wrong offsets");
    assertRefused(
        text,
        (batch, work) -> JcudaTable.of(0, JcudaColumn.of(batch.column(0).data(), 8)),
        "8 bytes of strings without rows");
  }

  private static JcudaFunction only(int column) {
    return (batch, work) -> JcudaTable.of(batch.rows(), batch.column(column));
  }

  /** It would be freed, or overwritten, before the copy. */
  @Test
  void memoryThatIsNotOfTheCall() {
    StructType one = new StructType().add("it", DataTypes.LongType, false);
    JcudaFunction own =
        (batch, work) -> {
          CUdeviceptr mine = new CUdeviceptr();
          succeed(JCudaDriver.cuMemAlloc(mine, 8L * batch.rows()));
          try {
            return JcudaTable.of(batch.rows(), JcudaColumn.of(mine, 8L * batch.rows()));
          } finally {
            succeed(JCudaDriver.cuMemFree(mine));
          }
        };
    assertRefused(one, own, "are neither in the batch nor in memory of JcudaWork.take");
    JcudaFunction tooShort =
        (batch, work) ->
            JcudaTable.of(
                batch.rows(), JcudaColumn.of(work.take(8L * batch.rows() - 1), 8L * batch.rows()));
    assertRefused(one, tooShort, "are neither in the batch nor in memory of JcudaWork.take");
    assertRefused(
        one,
        (batch, work) ->
            JcudaTable.of(batch.rows(), JcudaColumn.of(new CUdeviceptr(), 8L * batch.rows())),
        "bytes at 0x0, are neither");
  }

  @Test
  void whatIsKeptBeyondTheCall() {
    JcudaFunction keeping =
        (batch, work) -> {
          CUdeviceptr unused = work.take(100);
          kept = work;
          return batch;
        };
    assertThat(texts(mapped(facts(), keeping))).hasSize(ROWS);
    assertThatThrownBy(() -> kept.take(1)).hasMessageContaining("uses its JcudaWork after its end");
    assertThatThrownBy(() -> kept.kernel(ptx(), "features"))
        .hasMessageContaining("uses its JcudaWork after its end");
    awaitNoMemory();
  }

  @Test
  void kernelsThatAreNotThere() {
    StructType schema = facts().schema();
    assertRefused(
        schema,
        (batch, work) ->
            JcudaTable.of(
                0, JcudaColumn.of(work.take(work.kernel(ptx(), "featured").hashCode()), 0)),
        "the kernels of the program have no featured");
    assertRefused(
        schema,
        (batch, work) ->
            JcudaTable.of(0, JcudaColumn.of(work.take(work.kernel("no PTX", "a").hashCode()), 0)),
        "loading the kernels of the program on");
    assertRefused(
        schema, (batch, work) -> JcudaTable.of(0, JcudaColumn.of(work.take(-1), 0)), "-1 bytes");
  }

  @Test
  void typesThatNoBatchHas() {
    StructType lists = new StructType().add("l", DataTypes.createArrayType(DataTypes.LongType));
    assertThatThrownBy(() -> JcudaBatches.function(lists, (batch, work) -> batch))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("batches cannot be on a GPU: column l is array<bigint>");
  }

  private static void assertRefused(StructType schema, JcudaFunction function, String why) {
    assertThatThrownBy(() -> texts(mapped(facts(), schema, function))).hasStackTraceContaining(why);
  }
}
