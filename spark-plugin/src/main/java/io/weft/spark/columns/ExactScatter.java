package io.weft.spark.columns;

import io.weft.memory.Extent;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.spark.columns.PartitionBuilders.ChunkSink;
import java.io.IOException;
import java.util.Arrays;
import java.util.function.IntUnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Splits a map task's rows into chunks of an exact number of rows, independent of their size.
 * Readers read each chunk in place as a full batch. Lanes collect the rows. A full lane becomes a
 * chunk of a partition that is chosen at that time. The remaining rows become smaller chunks at the
 * end of their partitions.
 *
 * <p>A lane's rows are in the builders' memory until they become a chunk, so a task needs the
 * memory of one batch per lane. For one task thread.
 */
public final class ExactScatter implements AutoCloseable {
  private final int chunkRows;
  private final IntUnaryOperator partitionOf;
  private final int[] rows;
  private final Selection selection = new Selection();

  /** Rows that are about to be appended, by lane. */
  private final int[] added;

  private final BufferPool pool;
  private final PartitionBuilders builders;
  private boolean closed;

  /**
   * Opens a scatter.
   *
   * @param schema schema of the chunks; further columns of the rows are ignored
   * @param lanes number of chunks that are built at the same time, at least 1
   * @param partitions number of partitions of the output
   * @param partitionOf chooses the partition of a lane's chunk; called once per chunk
   * @param output that takes the chunks; not closed
   * @param chunkRows rows of a full chunk, at least 1
   */
  public ExactScatter(
      StructType schema,
      int lanes,
      int partitions,
      IntUnaryOperator partitionOf,
      MapOutputWriter output,
      int chunkRows) {
    this.chunkRows = chunkRows;
    this.partitionOf = partitionOf;
    this.rows = new int[partitions];
    this.added = new int[lanes];
    this.pool = BufferPool.borrow();
    this.builders =
        new PartitionBuilders(
            ColumnarSchema.of(schema), lanes, pool, redirect(ChunkSink.of(output)));
  }

  private ChunkSink redirect(ChunkSink output) {
    return new ChunkSink() {
      @Override
      public Extent allocate(long bytes) throws IOException {
        return output.allocate(bytes);
      }

      @Override
      public void commit(int lane, Extent chunk, long usedBytes, int chunkRows) {
        int partition = partitionOf.applyAsInt(lane);
        output.commit(partition, chunk, usedBytes, chunkRows);
        rows[partition] = Math.addExact(rows[partition], chunkRows);
      }

      @Override
      public void release(Extent chunk) {
        output.release(chunk);
      }
    };
  }

  /**
   * Appends a row.
   *
   * @param row the caller may change it afterwards
   * @throws IOException if the output has no room for a chunk, or a chunk's rows are too large
   */
  public void append(InternalRow row, int lane) throws IOException {
    try {
      builders.append(row, lane);
    } catch (BatchTooLargeException e) {
      throw tooLarge(e);
    }
    if (builders.rows(lane) == chunkRows) {
      builders.flush(lane, false);
    }
  }

  private IOException tooLarge(BatchTooLargeException cause) {
    return new IOException(
        "A batch of %d rows or its column has more than %d bytes or elements: ask for fewer rows"
            .formatted(chunkRows, BatchTooLargeException.LIMIT),
        cause);
  }

  /**
   * Appends the rows of a batch, column by column.
   *
   * @param batch with the schema's columns in their order; the caller may change it afterwards
   * @param lanes of its rows; may be longer than the batch
   * @throws IOException if the output has no room for a chunk, or a chunk's rows are too large
   */
  public void append(ColumnarBatch batch, int[] lanes) throws IOException {
    for (int start = 0; start < batch.numRows(); ) {
      int end = untilFull(lanes, start, batch.numRows());
      selection.byPartition(lanes, start, end, added.length);
      try {
        builders.append(batch, selection);
      } catch (BatchTooLargeException e) {
        throw tooLarge(e);
      }
      if (builders.rows(lanes[end - 1]) == chunkRows) {
        builders.flush(lanes[end - 1], false);
      }
      start = end;
    }
  }

  /** Returns the end of the rows that can be appended at once: the last one fills its lane. */
  private int untilFull(int[] lanes, int start, int end) {
    Arrays.fill(added, 0);
    int row = start;
    while (row < end && builders.rows(lanes[row]) + ++added[lanes[row]] < chunkRows) {
      row++;
    }
    return Math.min(row + 1, end);
  }

  /** Writes the remaining rows of the lanes. */
  public void finish() throws IOException {
    builders.flushAll(false);
  }

  /** Rows written so far, by partition. */
  public int[] partitionRows() {
    return rows.clone();
  }

  /** Frees the builders' memory. Rows that were not written are lost. Idempotent. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      pool.close();
    }
  }
}
