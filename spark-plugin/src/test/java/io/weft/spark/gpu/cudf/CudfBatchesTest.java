package io.weft.spark.gpu.cudf;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.Table;
import ai.rapids.cudf.TestColumns;
import io.weft.collectives.DataType;
import io.weft.shuffle.device.DeviceCatalog;
import io.weft.spark.DoubleGpus;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.WeftTensors;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.sql.WeftGpu;
import io.weft.testgpus.TestMachine;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Functions of cudf on batches of queries, compared with the same query on the host. */
class CudfBatchesTest {
  private static final int ROWS = 3000;
  private static final AtomicInteger STARTS = new AtomicInteger();

  /** A column that a test's function does not close in time. */
  private static volatile ColumnVector kept;

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
    CudfDouble.assume();
  }

  @AfterAll
  static void nothingIsLeftBehind() {
    if (spark != null) {
      DeviceCatalog catalog = device().catalog();
      catalog.keys().forEach(key -> catalog.removeShuffle(key.shuffleId()));
      Awaitility.await("no memory of tasks on the device")
          .atMost(Duration.ofSeconds(60))
          .until(() -> device().tiers().memory().takenBytes() == 0);
      spark.close();
      DoubleGpus.assertClean();
    }
  }

  @BeforeEach
  void cudfIsThere() {
    if (!Rmm.isInitialized()) {
      device().gpu().device().use();
      CudfDouble.initialise();
    }
  }

  /** A task whose job was failed by another task may still be in its function. */
  @AfterEach
  void noRuleIsBroken() {
    Awaitility.await("cudf's tables are closed")
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(CudfDouble.live()).isEmpty());
    assertThat(DoubleGpus.violations()).isEmpty();
  }

  private static DeviceExchange device() {
    return ExecutorGpu.current().exchange();
  }

  /** Every type that a batch may have, with nulls. */
  private static Dataset<Row> facts() {
    return spark
        .session()
        .range(0, ROWS, 1, 3)
        .selectExpr(
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
            "'' blank");
  }

  private static final int SMALLINT = 3;
  private static final int BOOLEAN = 9;

  private static List<String> texts(Dataset<Row> rows) {
    return rows
        .selectExpr("to_json(struct(*), map('ignoreNullFields', 'false'))")
        .as(Encoders.STRING())
        .collectAsList()
        .stream()
        .sorted()
        .toList();
  }

  private static Dataset<Row> mapped(Dataset<Row> rows, StructType schema, CudfFunction function) {
    return WeftGpu.mapBatches(rows, schema, CudfBatches.function(rows.schema(), function));
  }

  private static Dataset<Row> mapped(Dataset<Row> rows, CudfFunction function) {
    return mapped(rows, rows.schema(), function);
  }

  @Test
  void everyTypeIsSeenAndComesBack() {
    assertThat(texts(mapped(facts(), batch -> batch))).isEqualTo(texts(facts()));
  }

  @Test
  void resultsOfCudfMoveFromGpuToGpu() {
    Dataset<Row> there = WeftGpu.onDevice(facts()).repartition(5, col("k"));
    Dataset<Row> made =
        mapped(there, batch -> batch.filter(batch.getColumn(BOOLEAN))).repartition(3, col("s"));
    assertThat(texts(made)).isEqualTo(texts(facts().where("b"))).isNotEmpty();
  }

  @Test
  void columnsOfTheBatchMayBePartOfTheResult() {
    Dataset<Row> rows = facts();
    StructType schema =
        new StructType().add("s", DataTypes.StringType).add("id", DataTypes.LongType);
    CudfFunction swap =
        batch -> {
          try (Table own = batch) {
            return new Table(own.getColumn(4), own.getColumn(0));
          }
        };
    assertThat(texts(mapped(rows, schema, swap))).isEqualTo(texts(rows.select("s", "id")));
  }

  /** Tables without rows, as input and as result. */
  @Test
  void noRows() {
    Dataset<Row> none =
        mapped(facts().where("not b"), batch -> batch.filter(batch.getColumn(BOOLEAN)));
    assertThat(texts(none)).isEmpty();
    Dataset<Row> still = mapped(mapped(none, batch -> batch).repartition(2), batch -> batch);
    assertThat(texts(still)).isEmpty();
  }

  @Test
  void cudfIsStartedOnceIfItIsNotInitialised() {
    Rmm.shutdown();
    Dataset<Row> rows = facts();
    assertThatThrownBy(() -> texts(mapped(rows, batch -> batch)))
        .hasStackTraceContaining("cudf's memory (RMM) is not initialised in this executor");
    CudfStart start =
        () -> {
          STARTS.incrementAndGet();
          CudfDouble.initialise();
        };
    DeviceFunction function = CudfBatches.function(rows.schema(), start, batch -> batch);
    for (int i = 0; i < 2; i++) {
      assertThat(texts(WeftGpu.mapBatches(rows, rows.schema(), function))).isEqualTo(texts(rows));
    }
    assertThat(STARTS).hasValue(1);
  }

  @Test
  void aFunctionThatFails() {
    CudfFunction failing =
        batch -> {
          try (Table first = batch.filter(batch.getColumn(BOOLEAN))) {
            throw new java.io.IOException("no more of " + first.getNumberOfColumns() + " columns");
          }
        };
    assertRefused(facts().schema(), failing, "no more of 16 columns");
    assertRefused(facts().schema(), batch -> null, "returned no table");
  }

  @Test
  void tablesThatAreNotAsDeclared() {
    StructType one = new StructType().add("it", DataTypes.IntegerType, false);
    assertRefused(one, batch -> batch, "a table of 16 columns; declared are 1: struct<it:int>");
    assertRefused(
        one, only(SMALLINT), "column it of a table that a function of cudf made: is int, which is");
    assertRefused(one, only(1), "column it of a table that a function of cudf made: is declared");
    StructType price = new StructType().add("price", DataTypes.createDecimalType(9, 2));
    assertRefused(
        price,
        empty(DType.DTypeEnum.DECIMAL32, -2),
        "is decimal(9,2), which is DECIMAL64 scale:-2 in cudf; it is DECIMAL32 scale:-2 with 0");
  }

  /** cudf itself makes no empty columns of these types. */
  @Test
  void nestedColumnsAreRefused() {
    TestMachine.assumeDoubles();
    StructType one = new StructType().add("it", DataTypes.IntegerType, false);
    assertRefused(one, empty(DType.DTypeEnum.STRUCT, 0), "it is STRUCT with 0 nulls");
    assertRefused(one, empty(DType.DTypeEnum.LIST, 0), "it is LIST with 0 nulls");
  }

  /** If they were read as 4 bytes each, every second offset would be zero. */
  @Test
  void offsetsOfStringsWithEightBytes() {
    TestMachine.assumeDoubles();
    CudfDouble.makeLarge(true);
    try {
      CudfFunction filter = batch -> batch.filter(batch.getColumn(BOOLEAN));
      assertThatThrownBy(() -> texts(mapped(facts(), filter)))
          .hasStackTraceContaining("column s of a table that a function of cudf made: has offsets")
          .hasStackTraceContaining("LIBCUDF_LARGE_STRINGS_THRESHOLD");
    } finally {
      CudfDouble.makeLarge(false);
    }
  }

  private static CudfFunction only(int column) {
    return batch -> new Table(batch.getColumn(column));
  }

  private static CudfFunction empty(DType.DTypeEnum type, int scale) {
    return batch -> {
      try (ColumnVector column = TestColumns.empty(type, scale)) {
        return new Table(column);
      }
    };
  }

  @Test
  void columnsOfTheBatchThatAreKept() {
    CudfFunction keeping =
        batch -> {
          kept = batch.getColumn(0).incRefCount();
          return batch;
        };
    Dataset<Row> one = facts().coalesce(1);
    try {
      assertThatThrownBy(() -> texts(mapped(one, keeping)))
          .hasStackTraceContaining("a function on batches of cudf keeps columns of its batch");
    } finally {
      kept.close();
    }
  }

  @Test
  void typesThatNoBatchHas() {
    StructType lists = new StructType().add("l", DataTypes.createArrayType(DataTypes.LongType));
    assertThatThrownBy(() -> CudfBatches.function(lists, batch -> batch))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("batches cannot be tables of cudf: column l is array<bigint>");
  }

  /** Includes binary ones, which are bytes to Spark. */
  @Test
  void tensorsAreRefused() {
    for (String column : List.of("bin", "a")) {
      Dataset<Row> plain = facts().selectExpr("bin", "array(x) a").select(column);
      Dataset<Row> tensors = plain.select(WeftTensors.column(column, DataType.FLOAT64, 1));
      String why =
          "batches cannot be tables of cudf: column %s has tensors, of float64[1]"
              .formatted(column);
      assertThatThrownBy(() -> CudfBatches.function(tensors.schema(), batch -> batch))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining(why);
      assertThatThrownBy(() -> texts(mapped(facts().select("x"), tensors.schema(), batch -> batch)))
          .hasStackTraceContaining(why);
    }
  }

  private static void assertRefused(StructType schema, CudfFunction function, String why) {
    assertThatThrownBy(() -> texts(mapped(facts(), schema, function))).hasStackTraceContaining(why);
  }
}
