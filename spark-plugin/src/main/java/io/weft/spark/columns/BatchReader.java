package io.weft.spark.columns;

import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.spark.columns.ChunkFormat.ChunkCursor;
import io.weft.spark.columns.ChunkFormat.ChunkSource;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads chunks as batches, in the order of the chunks. Large chunks are read in place; small ones
 * are gathered into larger batches by bulk copy.
 *
 * <p>The reader reuses one batch object. The batch and all values read from it are valid until the
 * next call of {@link #hasNext()} or {@link #next()}, or {@link #close()}. Closing a batch or its
 * vectors does nothing.
 *
 * <p>One thread at a time reads. The caller closes the reader, which also closes the chunks. A
 * reader closes itself after its last batch. Another thread than the one that reads closes the
 * {@link ChunkReader} instead, which then frees all memory when the thread that reads allows it.
 */
public final class BatchReader implements Iterator<ColumnarBatch>, AutoCloseable {
  /** Batches of at least this size are read in place, even with few rows. */
  private static final long SMALL_BYTES = 128L << 10;

  private final ChunkSource chunks;
  private final ChunkCursor cursor = new ChunkCursor();
  private final int nodes;
  private final int smallRows;
  private final BatchGather gather;

  /** Vectors over the current chunk's batch, in place. */
  private final BlockColumnVector[] current;

  private final ColumnarBatch inPlace;
  private int currentRows;
  private long currentBytes;
  private boolean hasCurrent;

  private ColumnarBatch ready;
  private boolean exhausted;
  private boolean ended;
  private boolean closed;

  /**
   * Opens a reader.
   *
   * @param schema the schema that the chunks were written with
   * @param chunks to read; closed with the reader
   * @param targetRows rows of a full batch, at least 1; batches of less than a quarter of that, and
   *     less than 128 KiB, are gathered
   */
  public BatchReader(StructType schema, ChunkReader chunks, int targetRows) {
    this(schema, ChunkSource.of(chunks), targetRows);
    chunks.attach(gather::close);
  }

  BatchReader(StructType schema, ChunkSource chunks, int targetRows) {
    ColumnarSchema layout = ColumnarSchema.of(schema);
    this.chunks = chunks;
    this.nodes = layout.nodes();
    this.smallRows = targetRows / 4;
    this.gather = new BatchGather(layout, targetRows);
    this.current = BlockColumnVector.of(layout);
    this.inPlace = new ColumnarBatch(current);
  }

  /**
   * Reads the next batch if necessary, which makes the last batch invalid.
   *
   * @throws UncheckedIOException with a {@link BlockFetchException} if a block cannot be read
   * @throws IllegalStateException if a chunk is damaged
   */
  @Override
  public boolean hasNext() {
    if (ready == null && !ended) {
      chunks.use();
      try {
        ready = read();
      } catch (BlockFetchException e) {
        throw new UncheckedIOException(e);
      }
      if (ready == null) {
        // A task may read thousands of partitions in turn, so it frees each partition at its end.
        close();
      }
    }
    return ready != null;
  }

  @Override
  public ColumnarBatch next() {
    if (!hasNext()) {
      throw new NoSuchElementException("There are no more batches");
    }
    chunks.use();
    ColumnarBatch batch = ready;
    ready = null;
    return batch;
  }

  /** Returns the next batch, or null at the end. */
  private ColumnarBatch read() throws BlockFetchException {
    gather.clear();
    while (hasCurrent || load()) {
      boolean small = currentRows < smallRows && currentBytes < SMALL_BYTES;
      if (gather.isEmpty() && !(small && another())) {
        return takeCurrent();
      }
      if (!gather.isEmpty() && !(small && gather.hasRoom(currentRows, currentBytes))) {
        return gather.batch();
      }
      gather.append(current, currentRows, currentBytes);
      hasCurrent = false;
    }
    return gather.isEmpty() ? null : gather.batch();
  }

  private ColumnarBatch takeCurrent() {
    hasCurrent = false;
    inPlace.setNumRows(currentRows);
    return inPlace;
  }

  /** Points the current vectors at the next batch with rows; false if there is none. */
  private boolean load() throws BlockFetchException {
    while (cursor.hasNext() || nextChunk()) {
      if (cursor.hasNext()) {
        currentRows = cursor.next(nodes);
        currentBytes = cursor.batchBytes();
        for (BlockColumnVector vector : current) {
          vector.load(cursor, currentRows);
        }
        cursor.end();
        hasCurrent = currentRows > 0;
        if (hasCurrent) {
          return true;
        }
      }
    }
    return false;
  }

  /**
   * Whether more batches may follow the current one. Advances by at most one chunk, so that the
   * current batch stays readable.
   */
  private boolean another() throws BlockFetchException {
    return cursor.hasNext() || nextChunk();
  }

  private boolean nextChunk() throws BlockFetchException {
    if (!exhausted && chunks.next()) {
      cursor.open(chunks);
    } else {
      exhausted = true;
    }
    return !exhausted;
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      ended = true;
      ready = null;
      chunks.close();
      gather.close();
    }
  }

  /** Gathers small batches into larger ones. For one thread at a time. */
  static final class BatchGather implements AutoCloseable {
    private static final long MAX_BYTES = 16L << 20;

    private final int maxRows;
    private final BufferPool pool = BufferPool.borrow();
    private final ColumnBuilder[] builders;
    private final BlockColumnVector[] vectors;
    private final ColumnarBatch batch;
    private int rows;
    private long bytes;
    private boolean closed;

    BatchGather(ColumnarSchema schema, int maxRows) {
      this.maxRows = maxRows;
      BuilderContext context = new BuilderContext(pool, 1);
      builders =
          schema.columns().stream()
              .map(column -> ColumnBuilder.of(column, context))
              .toArray(ColumnBuilder[]::new);
      vectors = BlockColumnVector.of(schema);
      batch = new ColumnarBatch(vectors);
    }

    boolean isEmpty() {
      return rows == 0;
    }

    /** Whether another batch fits into the gathered one. */
    boolean hasRoom(int moreRows, long moreBytes) {
      return moreRows <= maxRows - rows && bytes + moreBytes <= MAX_BYTES;
    }

    /** Copies a batch's rows. Its memory may be freed afterwards. */
    void append(BlockColumnVector[] columns, int addedRows, long addedBytes) {
      for (int i = 0; i < builders.length; i++) {
        builders[i].appendRun(columns[i], 0, addedRows, 0);
      }
      rows += addedRows;
      bytes += addedBytes;
    }

    /** The gathered batch; valid until the next append, clear or close. */
    ColumnarBatch batch() {
      for (int i = 0; i < builders.length; i++) {
        builders[i].expose(0, vectors[i]);
      }
      batch.setNumRows(rows);
      return batch;
    }

    void clear() {
      if (rows > 0) {
        rows = 0;
        bytes = 0;
        for (ColumnBuilder builder : builders) {
          builder.clear(0, false);
        }
      }
    }

    /** Frees the memory. Can be repeated. */
    @Override
    public void close() {
      if (!closed) {
        closed = true;
        pool.close();
      }
    }
  }
}
