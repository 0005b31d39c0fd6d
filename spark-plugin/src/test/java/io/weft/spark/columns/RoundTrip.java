package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.columns.ChunkFormat.ChunkSource;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Scatters, reads back and compares. */
final class RoundTrip implements AutoCloseable {
  static final int TARGET_ROWS = 1000;

  private final StructType schema;
  private final int partitions;
  private final MemoryChunks chunks = new MemoryChunks();
  private final BatchScatter scatter;
  private final List<List<UnsafeRow>> expected = new ArrayList<>();
  private final BinaryRows bytes;

  RoundTrip(StructType schema, int partitions) {
    this.schema = schema;
    this.partitions = partitions;
    this.scatter = new BatchScatter(schema, partitions, chunks, TARGET_ROWS, 1 << 20);
    this.bytes = new BinaryRows(schema);
    for (int i = 0; i < partitions; i++) {
      expected.add(new ArrayList<>());
    }
  }

  /** Scatters a batch of these rows round-robin over the partitions. */
  RoundTrip send(ColumnarBatch batch, List<InternalRow> rows) throws IOException {
    int[] ids = new int[rows.size()];
    Arrays.setAll(ids, i -> (i * 7 + i / 3) % partitions);
    scatter.append(batch, ids);
    for (int row = 0; row < ids.length; row++) {
      expected.get(ids[row]).add(bytes.of(rows.get(row)));
    }
    return this;
  }

  /** Scatters rows round-robin over the partitions. */
  RoundTrip send(List<InternalRow> rows) throws IOException {
    for (int row = 0; row < rows.size(); row++) {
      scatter.append(rows.get(row), row % partitions);
      expected.get(row % partitions).add(bytes.of(rows.get(row)));
    }
    return this;
  }

  /** Reads all rows and compares them with the input. */
  void check() throws IOException {
    scatter.finish();
    assertThat(scatter.rows()).isEqualTo(expected.stream().mapToInt(List::size).sum());
    for (int partition = 0; partition < partitions; partition++) {
      assertThat(read(partition)).isEqualTo(expected.get(partition));
    }
  }

  private List<UnsafeRow> read(int partition) {
    List<UnsafeRow> rows = new ArrayList<>();
    ChunkSource source = chunks.read(chunks.of(partition));
    try (BatchReader reader = new BatchReader(schema, source, TARGET_ROWS)) {
      while (reader.hasNext()) {
        rows.addAll(bytes.of(reader.next()));
      }
    }
    return rows;
  }

  MemoryChunks chunks() {
    return chunks;
  }

  BatchScatter scatter() {
    return scatter;
  }

  @Override
  public void close() {
    scatter.close();
    chunks.close();
  }
}
