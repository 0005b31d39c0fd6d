package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.probe.ProbeOptions;
import io.weft.memory.Memory;
import io.weft.shuffle.device.DevicePartitioner;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.HostTable;
import io.weft.shuffle.device.PartitionedTable;
import io.weft.shuffle.device.PendingPartitions;
import io.weft.spark.DoubleGpus;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The GPU computes the same partitions as Spark's expression, for every type of GPU tables. The
 * kernel runs on the double of libcuda.
 */
class DeviceHashTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final int BUDGET = 256 << 20;

  private static CudaDevice device;
  private static CudaMemoryPool memory;
  private static CudaMemoryPool pinned;
  private static CudaLane lane;
  private static DevicePartitioner partitioner;

  @BeforeAll
  static void open() throws Exception {
    DoubleGpus.assume();
    Path folder = DoubleGpus.library("libcuda.so.1").getParent();
    ProbeOptions options =
        ProbeOptions.defaults().withEnvironment(Map.of("LD_LIBRARY_PATH", folder.toString()));
    device = CudaLibrary.load(options).open(7);
    memory = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, BUDGET);
    pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, BUDGET);
    lane = CudaLane.open(device, "hash", TIMEOUT, Priority.NORMAL);
    partitioner = DevicePartitioner.open(memory, pinned);
  }

  @AfterAll
  static void close() {
    if (partitioner != null) {
      lane.close();
      partitioner.close();
      memory.close();
      pinned.close();
      device.close();
    }
  }

  static List<DataType> types() {
    return Stream.of(
            "boolean",
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "float",
            "double",
            "date",
            "timestamp",
            "timestamp_ntz",
            "decimal(9,2)",
            "decimal(18,3)",
            "decimal(19,0)",
            "decimal(38,10)",
            "string",
            "binary")
        .map(TypeSet::parse)
        .toList();
  }

  @ParameterizedTest
  @MethodSource("types")
  void agreesWithSparkOnEveryType(DataType type) {
    StructType schema = RandomRows.schema(List.of(type));
    assertSame(schema, new RandomRows(1, 0.1).rows(schema, 2000), 997);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 200, 65_537})
  void agreesWithSparkOnAllTypesAtOnce(int partitions) {
    StructType schema = RandomRows.schema(types());
    assertSame(schema, new RandomRows(partitions, 0.3).rows(schema, 500), partitions);
  }

  /** All zeros are one value, and all NaNs are one value. */
  @Test
  void agreesWithSparkOnFloatsThatAreEqual() {
    StructType schema = RandomRows.schema(List.of(DataTypes.FloatType, DataTypes.DoubleType));
    List<InternalRow> rows = new ArrayList<>();
    for (int bits : new int[] {0, 1 << 31, 0x7fc00000, 0x7f800001, 0xffffffff, 0x7f800000, 1}) {
      float value = Float.intBitsToFloat(bits);
      double wide = Double.longBitsToDouble((long) bits << 32 | bits & 1);
      rows.add(new GenericInternalRow(new Object[] {value, wide}));
    }
    assertSame(schema, rows, DevicePartitioner.MAX_PARTITIONS);
  }

  private static void assertSame(StructType schema, List<InternalRow> rows, int partitions) {
    int[] expected = sparks(schema, rows, partitions);
    int[] keys = IntStream.range(0, schema.size()).toArray();
    try (HostTable table = SparkRows.table(pinned, withRowNumbers(schema), rows);
        DeviceTable there = table.upload(lane, memory);
        PendingPartitions pending = partitioner.byHash(lane, there, keys, partitions);
        PartitionedTable made = pending.pack(Deadline.after(TIMEOUT))) {
      made.ready().await(Deadline.after(TIMEOUT));
      int[] actual = new int[rows.size()];
      for (int p = 0; p < partitions; p++) {
        if (made.layout(p).rows() > 0) {
          readPartition(made.table(p), schema.size(), p, actual);
        }
      }
      assertThat(actual).isEqualTo(expected);
    }
  }

  /** The keys and a column with row numbers. */
  private static StructType withRowNumbers(StructType schema) {
    return schema.add(SparkRows.ROW_NUMBER, DataTypes.IntegerType, false);
  }

  private static void readPartition(DeviceTable part, int column, int partition, int[] actual) {
    try (HostTable here = HostTable.download(lane, part, pinned)) {
      here.ready().await(Deadline.after(TIMEOUT));
      for (int i = 0; i < here.layout().rows(); i++) {
        actual[Memory.getInt(here.address() + here.layout().data(column) + 4L * i)] = partition;
      }
    }
  }

  private static int[] sparks(StructType schema, List<InternalRow> rows, int partitions) {
    List<Attribute> output = new ArrayList<>();
    List<Expression> keys = new ArrayList<>();
    for (StructField field : schema.fields()) {
      AttributeReference column =
          new AttributeReference(
              field.name(),
              field.dataType(),
              true,
              Metadata.empty(),
              NamedExpression.newExprId(),
              seq(List.<String>of()));
      output.add(column);
      keys.add(column);
    }
    HashPartitioning partitioning = new HashPartitioning(seq(keys), partitions);
    UnsafeProjection projection =
        UnsafeProjection.create(seq(List.of(partitioning.partitionIdExpression())), seq(output));
    return rows.stream().mapToInt(row -> projection.apply(row).getInt(0)).toArray();
  }

  private static <T> Seq<T> seq(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }
}
