package io.weft.spark.columns;

import io.weft.catalog.MapOutputWriter;
import io.weft.memory.Extent;
import java.io.IOException;
import java.util.function.IntUnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/**
 * Cuts a map task's rows into chunks of exactly so many rows, whatever their size, so that each can
 * be read in place as a full batch. Rows gather in lanes; a lane that is full becomes a chunk of
 * the partition that is asked for then. What is left at the end becomes smaller chunks, the last
 * ones of their partitions.
 *
 * <p>A lane's rows lie in private memory until they are a chunk: a task needs the memory of a batch
 * per lane. For one task thread.
 */
public final class ExactScatter implements AutoCloseable {
  private final int chunkRows;
  private final IntUnaryOperator partitionOf;
  private final int[] rows;
  private final BufferPool pool;
  private final PartitionBuilders builders;
  private boolean closed;

  /**
   * Opens a scatter.
   *
   * @param schema of the rows, whose further columns are left out
   * @param lanes chunks that are built at a time, at least 1
   * @param partitions of the output
   * @param partitionOf names the partition of a lane's chunk; called once for each chunk
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
   * @param row free to change afterwards
   * @throws IOException if the output has no room for a chunk, or a chunk's rows are too large to
   *     be one
   */
  public void append(InternalRow row, int lane) throws IOException {
    try {
      builders.append(row, lane);
    } catch (BatchTooLargeException e) {
      throw new IOException(
          "A batch of %d rows has a column of more than %d bytes or elements: ask for fewer rows"
              .formatted(chunkRows, BatchTooLargeException.LIMIT),
          e);
    }
    if (builders.rows(lane) == chunkRows) {
      builders.flush(lane, false);
    }
  }

  /** Writes out what is left in the lanes. */
  public void finish() throws IOException {
    builders.flushAll(false);
  }

  /** Rows written so far, by partition. */
  public int[] partitionRows() {
    return rows.clone();
  }

  /** Chunks written so far. */
  public long chunks() {
    return builders.batches();
  }

  /** Gives back private memory; rows that were not written are lost. Can be repeated. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      pool.close();
    }
  }
}
