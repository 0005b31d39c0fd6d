package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.spark.columns.ChunkFormat.ChunkSource;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** When the reduce side copies batches, and how it handles damaged chunks. */
class BatchReaderTest {
  private static final StructType LONG = RandomRows.schema(List.of(DataTypes.LongType));

  private final MemoryChunks chunks = new MemoryChunks();

  @AfterEach
  void free() {
    chunks.close();
  }

  /** Chunks with those numbers of rows, whose values count up from 0. */
  private List<MemoryChunks.Chunk> write(StructType schema, int... rows) throws Exception {
    for (int count : rows) {
      try (BatchScatter scatter = new BatchScatter(schema, 1, chunks, 10_000, 1 << 20)) {
        scatter.append(
            BatchKind.ON_HEAP.batch(schema, new RandomRows(count, 0.1).rows(schema, count)),
            new int[count]);
        scatter.finish();
      }
    }
    return chunks.of(0);
  }

  private static List<Integer> sizes(BatchReader reader) {
    List<Integer> sizes = new ArrayList<>();
    while (reader.hasNext()) {
      sizes.add(reader.next().numRows());
    }
    return sizes;
  }

  @Test
  void hasNoBatchWithoutChunks() {
    try (BatchReader reader = new BatchReader(LONG, chunks.read(List.of()), 100)) {
      assertThat(reader.hasNext()).isFalse();
      assertThatThrownBy(reader::next).isInstanceOf(NoSuchElementException.class);
    }
  }

  @Test
  void gathersSmallBatchesAndLeavesLargeOnesAlone() throws Exception {
    List<MemoryChunks.Chunk> written = write(LONG, 10, 20, 50, 5, 30, 90, 8, 24, 24, 24, 24);
    try (BatchReader reader = new BatchReader(LONG, chunks.read(written), 100)) {
      assertThat(sizes(reader)).containsExactly(30, 50, 5, 30, 90, 80, 24);
    }
  }

  @Test
  void keepsTheOrderOfChunks() throws Exception {
    StructType schema = RandomRows.schema(List.of(DataType.fromDDL("array<string>")));
    int[] rows = {3, 1, 40, 2, 2, 2, 30, 30, 1};
    List<MemoryChunks.Chunk> written = write(schema, rows);
    BinaryRows bytes = new BinaryRows(schema);
    List<Object> expected = new ArrayList<>();
    for (int count : rows) {
      expected.addAll(bytes.of(new RandomRows(count, 0.1).rows(schema, count)));
    }
    List<Object> found = new ArrayList<>();
    try (BatchReader reader = new BatchReader(schema, chunks.read(written), 100)) {
      while (reader.hasNext()) {
        found.addAll(bytes.of(reader.next()));
      }
    }
    assertThat(found).isEqualTo(expected);
  }

  @Test
  void readsLargeBatchInPlace() throws Exception {
    ChunkSource source = chunks.read(write(LONG, 80));
    try (BatchReader reader = new BatchReader(LONG, source, 100)) {
      BlockColumnVector column = (BlockColumnVector) reader.next().column(0);
      assertThat(column.values()).isBetween(source.address(), source.address() + source.length());
    }
  }

  @Test
  void readsOnlySmallBatchInPlace() throws Exception {
    ChunkSource source = chunks.read(write(LONG, 2));
    try (BatchReader reader = new BatchReader(LONG, source, 100)) {
      BlockColumnVector column = (BlockColumnVector) reader.next().column(0);
      assertThat(column.values()).isNotZero();
      assertThat(reader.hasNext()).isFalse();
    }
  }

  @Test
  void readsSeveralBatchesOfOneChunk() throws Exception {
    List<MemoryChunks.Chunk> written = write(LONG, 60, 70, 10, 10);
    long bytes = written.stream().mapToLong(MemoryChunks.Chunk::length).sum();
    var joined = chunks.allocate(bytes);
    long at = joined.address();
    for (MemoryChunks.Chunk chunk : written) {
      Platform.copyMemory(null, chunk.address(), null, at, chunk.length());
      at += chunk.length();
    }
    chunks.commit(1, joined, bytes, 150);
    try (BatchReader reader = new BatchReader(LONG, chunks.read(chunks.of(1)), 100)) {
      assertThat(sizes(reader)).containsExactly(60, 70, 20);
    }
  }

  @Test
  void skipsChunksWithoutBytesOrRows() throws Exception {
    List<MemoryChunks.Chunk> written = new ArrayList<>(write(LONG, 2, 3, 50));
    MemoryChunks.Chunk nothing = new MemoryChunks.Chunk(written.get(0).address(), 0, 0);
    written.add(1, nothing);
    written.add(1, nothing);
    written.add(0, nothing);
    written.add(nothing);
    try (BatchReader reader = new BatchReader(LONG, chunks.read(written), 100)) {
      assertThat(sizes(reader)).containsExactly(5, 50);
    }
  }

  @Test
  void doesNotGatherFewRowsOfManyBytes() throws Exception {
    StructType schema = RandomRows.schema(List.of(DataType.fromDDL("binary")));
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      rows.add(
          new org.apache.spark.sql.catalyst.expressions.GenericInternalRow(
              new Object[] {new byte[200_000]}));
    }
    for (InternalRow row : rows) {
      try (BatchScatter scatter = new BatchScatter(schema, 1, chunks, 100, 1 << 20)) {
        scatter.append(row, 0);
        scatter.finish();
      }
    }
    try (BatchReader reader = new BatchReader(schema, chunks.read(chunks.of(0)), 100)) {
      assertThat(sizes(reader)).containsExactly(1, 1, 1);
    }
  }

  @Test
  void staysUsableWhenItsBatchesAreClosed() throws Exception {
    List<MemoryChunks.Chunk> written = write(LONG, 60, 10, 10, 70);
    int rows = 0;
    try (BatchReader reader = new BatchReader(LONG, chunks.read(written), 100)) {
      while (reader.hasNext()) {
        ColumnarBatch batch = reader.next();
        rows += batch.numRows();
        batch.closeIfFreeable();
        batch.close();
      }
    }
    assertThat(rows).isEqualTo(150);
  }

  /** A task may read thousands of partitions in turn and must not keep their memory. */
  @Test
  void closesItsChunksAtTheEnd() throws Exception {
    AtomicInteger closed = new AtomicInteger();
    ChunkSource source = chunks.read(write(LONG, 60, 70));
    BatchReader reader = new BatchReader(LONG, counting(source, closed), 100);
    reader.next();
    reader.next();
    assertThat(closed).hasValue(0);
    assertThat(reader.hasNext()).isFalse();
    assertThat(closed).hasValue(1);
    reader.close();
    assertThat(closed).hasValue(1);
  }

  private static ChunkSource counting(ChunkSource source, AtomicInteger closed) {
    return new ChunkSource() {
      @Override
      public boolean next() throws BlockFetchException {
        return source.next();
      }

      @Override
      public long address() {
        return source.address();
      }

      @Override
      public long length() {
        return source.length();
      }

      @Override
      public String describe() {
        return source.describe();
      }

      @Override
      public void close() {
        closed.incrementAndGet();
        source.close();
      }
    };
  }

  @Test
  void endsWhenItIsClosed() throws Exception {
    BatchReader reader = new BatchReader(LONG, chunks.read(write(LONG, 60, 70)), 100);
    reader.next();
    reader.close();
    reader.close();
    assertThat(reader.hasNext()).isFalse();
  }

  @Test
  void refusesDamagedChunks() throws Exception {
    refuses(0, 0x31434657, "another format or version");
    refuses(ChunkFormat.ROWS_OFFSET, -1, "negative number of rows");
    refuses(ChunkFormat.ROWS_OFFSET, 1_000_000, "ends outside its batch");
    refuses(ChunkFormat.ROWS_OFFSET, 1, "offsets of a column do not span its values");
    refuses(ChunkFormat.BYTES_OFFSET, 1 << 20, "ends outside it");
    refuses(ChunkFormat.BYTES_OFFSET, 65, "ends outside it", "multiple of 64");
    refuses(ChunkFormat.NODES_OFFSET + 4, 1 << 20, "do not span its values");
    refuses(ChunkFormat.NODES_OFFSET, 0, "do not span its values", "belong to no column");
  }

  private void refuses(int offset, int value, String... reasons) throws Exception {
    StructType schema = RandomRows.schema(List.of(DataTypes.StringType));
    try (MemoryChunks damaged = new MemoryChunks()) {
      try (BatchScatter scatter = new BatchScatter(schema, 1, damaged, 100, 1 << 20)) {
        List<InternalRow> rows = new RandomRows(1, 0.5).rows(schema, 90);
        scatter.append(BatchKind.ON_HEAP.batch(schema, rows), new int[90]);
        scatter.finish();
      }
      Platform.putInt(null, damaged.of(0).get(0).address() + offset, value);
      try (BatchReader reader = new BatchReader(schema, damaged.read(damaged.of(0)), 100)) {
        assertThatThrownBy(reader::hasNext)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("chunk 0 of a test")
            .satisfies(
                e -> assertThat(reasons).anyMatch(reason -> e.getMessage().contains(reason)));
      }
    }
  }

  @Test
  void refusesChunksOfAnotherSchema() throws Exception {
    List<MemoryChunks.Chunk> written = write(LONG, 50);
    StructType two = RandomRows.schema(List.of(DataTypes.LongType, DataTypes.LongType));
    try (BatchReader reader = new BatchReader(two, chunks.read(written), 100)) {
      assertThatThrownBy(reader::hasNext).isInstanceOf(IllegalStateException.class);
    }
  }
}
