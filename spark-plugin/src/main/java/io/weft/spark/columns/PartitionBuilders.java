package io.weft.spark.columns;

import io.weft.memory.Extent;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.spark.columns.BatchScatter.ChunkListener;
import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Builds the current batch of every partition and writes it as a chunk. For one task thread. */
final class PartitionBuilders {
  private final ColumnBuilder[] columns;
  private final int nodes;
  private final int[] rows;
  private final BufferPool pool;
  private final ChunkSink output;
  private ChunkListener listener = (partition, address, bytes, rows, packedBytes) -> {};
  private final ChunkWriter writer = new ChunkWriter();
  private long batches;
  private long packedBytes;

  PartitionBuilders(ColumnarSchema schema, int partitions, BufferPool pool, ChunkSink output) {
    BuilderContext context = new BuilderContext(pool, partitions);
    this.columns =
        schema.columns().stream()
            .map(column -> ColumnBuilder.of(column, context))
            .toArray(ColumnBuilder[]::new);
    this.nodes = schema.nodes();
    this.rows = new int[partitions];
    this.pool = pool;
    this.output = output;
  }

  /** Reports all chunks to a listener. */
  void listen(ChunkListener newListener) {
    listener = newListener;
  }

  /** Bytes of the rows of all committed chunks in Spark's packed format. */
  long packedBytes() {
    return packedBytes;
  }

  /** Number of rows of a partition's batch. */
  int rows(int partition) {
    return rows[partition];
  }

  /** Number of committed chunks. */
  long batches() {
    return batches;
  }

  /**
   * Appends selected rows. Counts them only if all columns succeed.
   *
   * @throws BatchTooLargeException if a batch could no longer be written
   */
  void append(ColumnarBatch batch, Selection selection) {
    for (int i = 0; i < columns.length; i++) {
      columns[i].append(batch.column(i), selection, null);
    }
    if (mayExceedChunk()) {
      for (int group = 0; group < selection.groups(); group++) {
        checkSize(selection.partition(group));
      }
    }
    for (int group = 0; group < selection.groups(); group++) {
      rows[selection.partition(group)] += selection.from(group + 1) - selection.from(group);
    }
  }

  /**
   * Appends a row. Counts it only if all columns succeed.
   *
   * @throws BatchTooLargeException if the batch could no longer be written
   */
  void append(InternalRow row, int partition) {
    for (int i = 0; i < columns.length; i++) {
      columns[i].append(row, i, partition);
    }
    if (mayExceedChunk()) {
      checkSize(partition);
    }
    rows[partition]++;
  }

  /** Cheap, because most builders never hold that much. */
  private boolean mayExceedChunk() {
    return pool.usedBytes() > output.maxBytes() / 2;
  }

  private void checkSize(int partition) {
    if (measure(partition) > output.maxBytes()) {
      throw new BatchTooLargeException();
    }
  }

  /** Drops values of a partition that were appended but not counted. */
  void rollBack(int partition) {
    for (ColumnBuilder column : columns) {
      column.truncate(partition, rows[partition]);
    }
  }

  /** Bytes of the partition's batch in a chunk. */
  long measure(int partition) {
    long bytes = ChunkFormat.headerBytes(nodes);
    for (ColumnBuilder column : columns) {
      bytes += column.measure(partition);
    }
    return bytes;
  }

  /**
   * Writes a partition's batch, if it has rows, as a chunk and starts a new one.
   *
   * @param release whether the builders' memory goes back to the pool
   * @return bytes of the chunk
   */
  long flush(int partition, boolean release) throws IOException {
    long bytes = 0;
    if (rows[partition] > 0) {
      bytes = measure(partition);
      Extent chunk = output.allocate(bytes);
      boolean committed = false;
      try {
        write(partition, chunk.address(), bytes);
        long packed = packed(partition);
        listener.written(partition, chunk.address(), bytes, rows[partition], packed);
        output.commit(partition, chunk, bytes, rows[partition]);
        committed = true;
        packedBytes += packed;
      } finally {
        if (!committed) {
          output.release(chunk);
        }
      }
      batches++;
    }
    clear(partition, release);
    return bytes;
  }

  private long packed(int partition) {
    long bytes = ColumnBuilder.packedWords(columns.length) * rows[partition];
    for (ColumnBuilder column : columns) {
      bytes += column.packedInRows(partition, rows[partition]);
    }
    return bytes;
  }

  private void write(int partition, long address, long bytes) {
    writer.begin(address, rows[partition], nodes, bytes);
    for (ColumnBuilder column : columns) {
      column.write(partition, writer);
    }
    writer.end();
  }

  private void clear(int partition, boolean release) {
    if (rows[partition] > 0 || release) {
      rows[partition] = 0;
      for (ColumnBuilder column : columns) {
        column.clear(partition, release);
      }
    }
  }

  /** Flushes every partition. */
  void flushAll(boolean release) throws IOException {
    for (int partition = 0; partition < rows.length; partition++) {
      flush(partition, release);
    }
  }

  /**
   * Flushes the partitions that are at least as large as the average of those with rows, which is
   * at least half of the bytes. Frees the memory of partitions without rows.
   */
  void flushLargest() throws IOException {
    long[] bytes = new long[rows.length];
    long total = 0;
    int filled = 0;
    for (int partition = 0; partition < rows.length; partition++) {
      if (rows[partition] > 0) {
        bytes[partition] = measure(partition);
        total += bytes[partition];
        filled++;
      }
    }
    for (int partition = 0; partition < rows.length; partition++) {
      if (bytes[partition] * filled >= total) {
        flush(partition, true);
      } else if (rows[partition] == 0) {
        clear(partition, true);
      }
    }
  }

  /** Receives a scatter's chunks. */
  interface ChunkSink {
    /** Bytes of the largest chunk that can be allocated. */
    default long maxBytes() {
      return BatchTooLargeException.LIMIT;
    }

    /** Allocates a chunk. */
    Extent allocate(long bytes) throws IOException;

    /** Appends a chunk to a partition. */
    void commit(int partition, Extent chunk, long usedBytes, int rows);

    /** Frees a chunk that was not committed. */
    void release(Extent chunk);

    /** Adapts the output of a map task. */
    static ChunkSink of(MapOutputWriter output) {
      return new ChunkSink() {
        @Override
        public Extent allocate(long bytes) throws IOException {
          return output.allocate(bytes);
        }

        @Override
        public void commit(int partition, Extent chunk, long usedBytes, int rows) {
          output.commit(partition, chunk, usedBytes, rows);
        }

        @Override
        public void release(Extent chunk) {
          output.release(chunk);
        }
      };
    }
  }
}
