package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.weft.memory.Extent;
import io.weft.spark.columns.PartitionBuilders.ChunkSink;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Edge cases of the map side. */
class BatchScatterTest {
  private static final StructType LONG = RandomRows.schema(List.of(DataTypes.LongType));

  @Test
  void writesNothingForNoRows() throws Exception {
    try (RoundTrip trip = new RoundTrip(LONG, 3)) {
      trip.send(BatchKind.ON_HEAP.batch(LONG, List.of()), List.of()).check();
      assertThat(trip.chunks().all()).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(BatchKind.class)
  void carriesRowsWithoutColumns(BatchKind kind) throws Exception {
    StructType none = new StructType();
    InternalRow empty = new GenericInternalRow(new Object[0]);
    List<InternalRow> rows = Collections.nCopies(2500, empty);
    try (RoundTrip trip = new RoundTrip(none, 2)) {
      trip.send(kind.batch(none, rows), rows).send(rows).check();
      assertThat(trip.chunks().all()).allMatch(chunk -> chunk.length() == ChunkFormat.ALIGNMENT);
    }
  }

  @ParameterizedTest
  @EnumSource(BatchKind.class)
  void carriesOneRowOfEveryType(BatchKind kind) throws Exception {
    StructType schema = RandomRows.schema(TypeSet.leaves());
    List<InternalRow> rows = new RandomRows(1, 0).rows(schema, 1);
    try (RoundTrip trip = new RoundTrip(schema, 5)) {
      trip.send(kind.orIfUnfit(schema).batch(schema, rows), rows).send(rows).check();
    }
  }

  @ParameterizedTest
  @EnumSource(BatchKind.class)
  void carriesOnlyNulls(BatchKind kind) throws Exception {
    List<DataType> types = new ArrayList<>(TypeSet.leaves());
    types.add(DataType.fromDDL("array<string>"));
    types.add(DataType.fromDDL("map<string, int>"));
    StructType schema = RandomRows.schema(types);
    List<InternalRow> rows = new RandomRows(1, 1.1).rows(schema, 100);
    try (RoundTrip trip = new RoundTrip(schema, 5)) {
      trip.send(kind.orIfUnfit(schema).batch(schema, rows), rows).send(rows).check();
    }
  }

  @ParameterizedTest
  @EnumSource(BatchKind.class)
  void carriesLongStrings(BatchKind kind) throws Exception {
    StructType schema = RandomRows.schema(List.of(DataTypes.StringType, DataTypes.BinaryType));
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      byte[] bytes = new byte[1 << 20];
      Arrays.fill(bytes, (byte) ('a' + i));
      rows.add(new GenericInternalRow(new Object[] {UTF8String.fromBytes(bytes), bytes}));
    }
    try (RoundTrip trip = new RoundTrip(schema, 2)) {
      trip.send(kind.batch(schema, rows), rows).send(rows).check();
    }
  }

  @Test
  void carriesVectorsOfMachineLearning() throws Exception {
    StructType schema = RandomRows.schema(List.of(new VectorLikeUdt(), DataTypes.IntegerType));
    Object dense =
        new GenericInternalRow(
            new Object[] {(byte) 1, null, null, new GenericArrayData(new double[] {1, -2.5, 0})});
    Object sparse =
        new GenericInternalRow(
            new Object[] {
              (byte) 0,
              4,
              new GenericArrayData(new int[] {1, 3}),
              new GenericArrayData(new double[] {0.5, 7})
            });
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < 30; i++) {
      Object vector = i % 3 == 0 ? null : i % 3 == 1 ? dense : sparse;
      rows.add(new GenericInternalRow(new Object[] {vector, i}));
    }
    for (BatchKind kind : BatchKind.values()) {
      try (RoundTrip trip = new RoundTrip(schema, 4)) {
        trip.send(kind.batch(schema, rows), rows).send(rows).check();
      }
    }
  }

  /** Spark's rows also store such a value as null. */
  @Test
  void storesDecimalThatDoesNotFitItsTypeAsNull() throws Exception {
    StructType schema =
        RandomRows.schema(
            List.of(DataTypes.createDecimalType(4, 2), DataTypes.createDecimalType(20, 2)));
    Decimal small = Decimal.apply("12.3");
    Decimal large = Decimal.apply("1234567890123456789012.34");
    List<InternalRow> rows =
        List.of(
            new GenericInternalRow(new Object[] {small, small}),
            new GenericInternalRow(new Object[] {large, large}));
    try (RoundTrip trip = new RoundTrip(schema, 1)) {
      trip.send(rows).check();
    }
  }

  @Test
  void keepsEachBatchWithinTheTarget() throws Exception {
    try (MemoryChunks chunks = new MemoryChunks();
        BatchScatter scatter = new BatchScatter(LONG, 2, chunks, 64, 1 << 20)) {
      List<InternalRow> rows = new RandomRows(1, 0).rows(LONG, 1000);
      scatter.append(BatchKind.ON_HEAP.batch(LONG, rows), new int[1000]);
      scatter.finish();
      assertThat(chunks.of(0)).allMatch(chunk -> chunk.rows() <= 64);
      assertThat(scatter.batches()).isEqualTo(chunks.of(0).size()).isLessThan(20);
    }
  }

  @Test
  void makesSmallerBatchesOfLargeRows() throws Exception {
    StructType schema = RandomRows.schema(List.of(DataType.fromDDL("array<float>")));
    Object tensor = new GenericArrayData(new float[1024]);
    List<InternalRow> rows =
        Collections.nCopies(2000, new GenericInternalRow(new Object[] {tensor}));
    try (MemoryChunks chunks = new MemoryChunks();
        BatchScatter scatter = new BatchScatter(schema, 2, chunks, 8192, 64 << 20)) {
      scatter.append(BatchKind.ON_HEAP.batch(schema, rows), new int[2000]);
      for (InternalRow row : rows) {
        scatter.append(row, 1);
      }
      scatter.finish();
      for (int partition = 0; partition < 2; partition++) {
        assertThat(chunks.of(partition)).allMatch(chunk -> chunk.length() < 1_100_000);
        assertThat(chunks.of(partition)).hasSizeLessThan(25);
      }
    }
  }

  @Test
  void boundsTheMemoryOfManyPartitionsAndColumns() throws Exception {
    int partitions = 5000;
    long budget = 32 << 20;
    StructType schema = RandomRows.schema(Collections.nCopies(50, DataTypes.LongType));
    List<InternalRow> rows = new RandomRows(1, 0.1).rows(schema, 4096);
    ColumnarBatch batch = BatchKind.ON_HEAP.batch(schema, rows);
    int[] ids = new int[4096];
    try (MemoryChunks chunks = new MemoryChunks();
        BatchScatter scatter = new BatchScatter(schema, partitions, chunks, 8192, budget)) {
      for (int i = 0; i < 50; i++) {
        int shift = i * 31;
        Arrays.setAll(ids, row -> (row * 7 + shift) % partitions);
        scatter.append(batch, ids);
        assertThat(scatter.builderBytes()).isLessThan(budget);
        assertThat(scatter.reservedBytes()).isLessThan(3 * budget);
      }
      scatter.finish();
      assertThat(scatter.rows()).isEqualTo(50L * 4096);
      assertThat(chunks.all().stream().mapToInt(MemoryChunks.Chunk::rows).sum())
          .isEqualTo(50 * 4096);
    }
  }

  /** First small values in all partitions, then large ones in one: no memory leaks. */
  @Test
  void boundsTheMemoryWhenSizesChange() throws Exception {
    long budget = 4 << 20;
    StructType schema = RandomRows.schema(List.of(DataTypes.StringType));
    try (MemoryChunks chunks = new MemoryChunks();
        BatchScatter scatter = new BatchScatter(schema, 300, chunks, 8192, budget)) {
      for (int round = 0; round < 60; round++) {
        byte[] bytes = new byte[1 << (round % 15)];
        InternalRow row = new GenericInternalRow(new Object[] {UTF8String.fromBytes(bytes)});
        for (int i = 0; i < 600; i++) {
          scatter.append(row, (i * round) % 300);
          assertThat(scatter.builderBytes()).isLessThan(budget + (1 << 16));
        }
        assertThat(scatter.reservedBytes()).isLessThan(3 * budget + BufferPool.BLOCK_BYTES);
      }
    }
  }

  /** Three lists of a billion nulls each. The offsets of two of them exceed one batch. */
  @Test
  void startsNewBatchBeforeOffsetsOverflow() throws Exception {
    assumeFalse(BatchKind.SPARK_4_0, "Spark 4.0 has no vectors of arrays of the null type");
    StructType schema =
        RandomRows.schema(List.of(DataTypes.IntegerType, DataType.fromDDL("array<void>")));
    OnHeapColumnVector[] columns = OnHeapColumnVector.allocateColumns(3, schema);
    for (int row = 0; row < 3; row++) {
      columns[0].putInt(row, row);
      columns[1].putArray(row, 0, 1_200_000_000);
    }
    try (MemoryChunks chunks = new MemoryChunks();
        BatchScatter scatter = new BatchScatter(schema, 2, chunks, 100, 1 << 20)) {
      scatter.append(new ColumnarBatch(columns, 3), new int[] {1, 1, 1});
      scatter.finish();
      assertThat(chunks.of(1)).extracting(MemoryChunks.Chunk::rows).containsExactly(1, 1, 1);
      try (BatchReader reader = new BatchReader(schema, chunks.read(chunks.of(1)), 1)) {
        for (int row = 0; row < 3; row++) {
          ColumnarBatch batch = reader.next();
          assertThat(batch.column(0).getInt(0)).isEqualTo(row);
          assertThat(batch.column(1).getArray(0).numElements()).isEqualTo(1_200_000_000);
        }
      }
    }
  }

  @Test
  void refusesRowTooLargeForABatch() throws Exception {
    assumeFalse(BatchKind.SPARK_4_0, "Spark 4.0 has no vectors of arrays of the null type");
    StructType schema = RandomRows.schema(List.of(DataType.fromDDL("array<array<void>>")));
    OnHeapColumnVector[] columns = OnHeapColumnVector.allocateColumns(1, schema);
    columns[0].putArray(0, 0, 2);
    columns[0].arrayData().reserve(2);
    columns[0].arrayData().putArray(0, 0, 1_200_000_000);
    columns[0].arrayData().putArray(1, 0, 1_200_000_000);
    try (MemoryChunks chunks = new MemoryChunks();
        BatchScatter scatter = new BatchScatter(schema, 2, chunks, 100, 1 << 20)) {
      assertThatThrownBy(() -> scatter.append(new ColumnarBatch(columns, 1), new int[] {1}))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("single row")
          .hasMessageContaining("spark.weft.route=rows");
    }
  }

  /** Each column fits a batch, and their sum does not fit a chunk. */
  @Test
  void startsNewBatchBeforeAChunkOverflows() throws Exception {
    long most = 1 << 20;
    StructType schema =
        RandomRows.schema(
            List.of(
                DataTypes.IntegerType,
                DataType.fromDDL("array<float>"),
                DataType.fromDDL("array<float>")));
    Object tensor = new GenericArrayData(new float[1536]);
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < 256; i++) {
      rows.add(new GenericInternalRow(new Object[] {i, tensor, tensor}));
    }
    try (MemoryChunks chunks = new MemoryChunks().upTo(most);
        BatchScatter scatter = new BatchScatter(schema, 1, chunks, 8192, 64 << 20)) {
      scatter.append(BatchKind.ON_HEAP.batch(schema, rows), new int[256]);
      scatter.finish();
      assertThat(chunks.of(0)).hasSizeGreaterThan(3);
      try (BatchReader reader = new BatchReader(schema, chunks.read(chunks.of(0)), 1)) {
        int row = 0;
        while (reader.hasNext()) {
          ColumnarBatch batch = reader.next();
          for (int i = 0; i < batch.numRows(); i++) {
            assertThat(batch.column(0).getInt(i)).isEqualTo(row++);
            assertThat(batch.column(2).getArray(i).numElements()).isEqualTo(1536);
          }
        }
        assertThat(row).isEqualTo(256);
      }
    }
  }

  @Test
  void refusesRowTooLargeForAChunk() throws Exception {
    StructType schema = RandomRows.schema(List.of(DataTypes.BinaryType, DataTypes.BinaryType));
    byte[] half = new byte[600 << 10];
    InternalRow row = new GenericInternalRow(new Object[] {half, half});
    try (MemoryChunks chunks = new MemoryChunks().upTo(1 << 20);
        BatchScatter scatter = new BatchScatter(schema, 1, chunks, 100, 64 << 20)) {
      assertThatThrownBy(() -> scatter.append(row, 0))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("single row")
          .hasMessageContaining("spark.weft.route=rows");
    }
  }

  @Test
  void reportsAFullOutput() {
    ChunkSink full =
        new ChunkSink() {
          @Override
          public Extent allocate(long bytes) throws IOException {
            throw new IOException("full");
          }

          @Override
          public void commit(int partition, Extent chunk, long usedBytes, int rows) {}

          @Override
          public void release(Extent chunk) {}
        };
    try (BatchScatter scatter = new BatchScatter(LONG, 1, full, 10, 1 << 20)) {
      List<InternalRow> rows = new RandomRows(1, 0).rows(LONG, 30);
      assertThatThrownBy(() -> scatter.append(BatchKind.ON_HEAP.batch(LONG, rows), new int[30]))
          .isInstanceOf(IOException.class)
          .hasMessage("full");
    }
  }

  @Test
  void refusesBatchOfOtherWidth() {
    try (MemoryChunks chunks = new MemoryChunks();
        BatchScatter scatter = new BatchScatter(LONG, 1, chunks, 10, 1 << 20)) {
      assertThatThrownBy(
              () -> scatter.append(new ColumnarBatch(new ColumnVector[0], 1), new int[1]))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("0 columns")
          .hasMessageContaining("schema of 1");
    }
  }

  @Test
  void refusesNonsensicalTargets() {
    try (MemoryChunks chunks = new MemoryChunks()) {
      assertThatThrownBy(() -> new BatchScatter(LONG, 0, chunks, 1, 1))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("0 partitions");
    }
  }

  @Test
  void freesItsMemory() throws Exception {
    BufferPool.freeIdle();
    try (MemoryChunks chunks = new MemoryChunks()) {
      BatchScatter scatter = new BatchScatter(LONG, 1, chunks, 10, 1 << 20);
      scatter.append(new RandomRows(1, 0).rows(LONG, 1).get(0), 0);
      assertThat(scatter.builderBytes()).isPositive();
      scatter.close();
      scatter.close();
      try (BufferPool again = BufferPool.borrow()) {
        assertThat(again.usedBytes()).isZero();
        assertThat(again.reservedBytes()).isPositive();
      }
    }
  }
}
