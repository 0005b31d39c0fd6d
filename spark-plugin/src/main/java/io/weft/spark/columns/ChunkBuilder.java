package io.weft.spark.columns;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.spark.columns.PartitionBuilders.ChunkSink;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Builds chunks of rows for a consumer. Each chunk is valid only during the consumer's call. For
 * one task thread.
 */
public final class ChunkBuilder implements AutoCloseable {
  private final StructType schema;
  private final SharedArena arena;
  private final Consumer consumer;
  private final BufferPool pool = BufferPool.borrow();
  private final PartitionBuilders builders;
  private final Selection selection = new Selection();
  private boolean closed;

  /** Consumes a chunk, which is freed when the call returns. */
  @FunctionalInterface
  public interface Consumer {
    void accept(ChunkView chunk);
  }

  /** Creates a builder whose chunks are allocated in the arena. */
  public ChunkBuilder(StructType schema, SharedArena arena, Consumer consumer) {
    this.schema = schema;
    this.arena = arena;
    this.consumer = consumer;
    this.builders = new PartitionBuilders(ColumnarSchema.of(schema), 1, pool, sink());
  }

  private ChunkSink sink() {
    return new ChunkSink() {
      @Override
      public Extent allocate(long bytes) throws IOException {
        try {
          return arena.allocate(bytes, Use.TRANSIENT);
        } catch (ArenaFullException e) {
          throw new IOException("no memory for a chunk of " + bytes + " bytes", e);
        }
      }

      @Override
      public void commit(int partition, Extent chunk, long usedBytes, int rows) {
        consumer.accept(ChunkView.of(schema, chunk.address(), usedBytes, "a chunk that was built"));
        arena.free(chunk);
      }

      @Override
      public void release(Extent chunk) {
        arena.free(chunk);
      }
    };
  }

  /** Appends a row. The caller may change it afterwards. */
  public void append(InternalRow row) {
    try {
      builders.append(row, 0);
    } catch (BatchTooLargeException e) {
      throw new UncheckedIOException(
          new IOException(
              "rows or their column have more than %d bytes or elements: ask for smaller batches"
                  .formatted(BatchTooLargeException.LIMIT),
              e));
    }
  }

  /**
   * Appends rows of a batch, which the caller may change afterwards. Flushes earlier rows first if
   * one chunk cannot hold both.
   *
   * @param start first row
   * @param count of rows, 0 or more
   * @throws IOException if there is no memory for a chunk, or a single row is too large for one
   */
  public void append(ColumnarBatch batch, int start, int count) throws IOException {
    if (count == 0) {
      return;
    }
    selection.run(0, start, count);
    try {
      builders.append(batch, selection);
    } catch (BatchTooLargeException e) {
      builders.rollBack(0);
      split(batch, start, count, e);
    }
  }

  private void split(ColumnarBatch batch, int start, int count, BatchTooLargeException cause)
      throws IOException {
    if (rows() > 0) {
      flush();
      append(batch, start, count);
    } else if (count > 1) {
      append(batch, start, count / 2);
      append(batch, start + count / 2, count - count / 2);
    } else {
      throw new IOException(
          "a row or its column has more than %d bytes or elements"
              .formatted(BatchTooLargeException.LIMIT),
          cause);
    }
  }

  /** Bytes of a chunk of the appended rows. */
  public long bytes() {
    return builders.measure(0);
  }

  /** Number of rows not flushed yet. */
  public int rows() {
    return builders.rows(0);
  }

  /**
   * Passes the appended rows to the consumer, if there are any.
   *
   * @throws IOException if there is no memory for the chunk
   */
  public void flush() throws IOException {
    builders.flushAll(false);
  }

  /** Frees the builder's memory. Rows that were not flushed are lost. Idempotent. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      pool.close();
    }
  }
}
