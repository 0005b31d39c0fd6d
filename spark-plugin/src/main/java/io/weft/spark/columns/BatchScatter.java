package io.weft.spark.columns;

import io.weft.shuffle.store.MapOutputWriter;
import io.weft.spark.columns.PartitionBuilders.ChunkSink;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Splits a map task's rows by partition, column by column, into batches of its output.
 *
 * <p>Builders collect the rows. A partition's rows become a chunk when they reach the target rows
 * of a batch or about half a mebibyte. If the builders of all partitions exceed the memory budget,
 * the larger half of the partitions is flushed. {@link #finish()} flushes the rest. Rows of a
 * partition keep their order.
 *
 * <p>For one task thread. {@link #close()} frees the builders' memory. Chunks belong to the output.
 */
public final class BatchScatter implements AutoCloseable {
  /** With larger budgets, parts of a chunk could exceed its 32-bit offsets. */
  private static final long MAX_BUILDER_BYTES = 1L << 30;

  private final int partitions;
  private final long targetBytes;
  private final BufferPool pool;
  private final PartitionBuilders builders;
  private final Selection selection = new Selection();
  private final SliceSize slice;
  private final int columns;
  private long rows;
  private boolean closed;

  /**
   * Opens a scatter.
   *
   * @param schema of all batches and rows; see {@link ColumnarSchema#unsupportedReason}
   * @param partitions at least 1
   * @param output that takes the chunks; not closed
   * @param targetRows rows of a full batch, at least 1; batches of large rows have fewer
   * @param targetBytes memory for the builders of all partitions, at least 1; exceeded by at most
   *     the rows of one append; capped at 1 GiB
   */
  public BatchScatter(
      StructType schema, int partitions, MapOutputWriter output, int targetRows, long targetBytes) {
    this(schema, partitions, ChunkSink.of(output), targetRows, targetBytes);
  }

  BatchScatter(
      StructType schema, int partitions, ChunkSink output, int targetRows, long targetBytes) {
    if (partitions < 1 || targetRows < 1 || targetBytes < 1) {
      throw new IllegalArgumentException(
          "A scatter needs at least one partition, one row and one byte of memory, but has "
              + (partitions + " partitions, " + targetRows + " rows, " + targetBytes + " bytes"));
    }
    ColumnarSchema layout = ColumnarSchema.of(schema);
    this.partitions = partitions;
    this.targetBytes = Math.min(targetBytes, MAX_BUILDER_BYTES);
    this.columns = layout.columns().size();
    this.slice = new SliceSize(partitions, targetRows, this.targetBytes / 4);
    this.pool = BufferPool.borrow();
    this.builders = new PartitionBuilders(layout, partitions, pool, output);
  }

  /** Reports all chunks to a listener. Call it before the first append. */
  public void listen(ChunkListener listener) {
    builders.listen(listener);
  }

  /**
   * Appends a batch's rows.
   *
   * @param batch with the schema's columns in the schema's order; free to change afterwards
   * @param partitionIds of its rows, 0 to partitions - 1; may be longer than the batch
   * @throws IOException if the output has no room for a chunk
   */
  public void append(ColumnarBatch batch, int[] partitionIds) throws IOException {
    if (batch.numCols() != columns) {
      throw new IllegalArgumentException(
          "A batch of " + batch.numCols() + " columns does not fit a schema of " + columns);
    }
    int end = batch.numRows();
    for (int start = 0; start < end; ) {
      int stop = (int) Math.min(end, start + (long) slice.rows());
      append(batch, partitionIds, start, stop);
      start = stop;
    }
  }

  private void append(ColumnarBatch batch, int[] ids, int start, int end) throws IOException {
    select(ids, start, end);
    makeRoom();
    try {
      builders.append(batch, selection);
    } catch (BatchTooLargeException e) {
      split(batch, ids, start, end, e);
      return;
    }
    rows += end - start;
    if (slice.wantsSample()) {
      sample();
    }
    flushOverBudget();
  }

  private void select(int[] ids, int start, int end) {
    if (partitions == 1) {
      selection.run(0, start, end - start);
    } else {
      selection.byPartition(ids, start, end, partitions);
    }
  }

  /** Flushes partitions that would exceed the target rows of a batch. */
  private void makeRoom() throws IOException {
    for (int group = 0; group < selection.groups(); group++) {
      int partition = selection.partition(group);
      int count = selection.from(group + 1) - selection.from(group);
      if (count > slice.chunkRows() - builders.rows(partition)) {
        flush(partition);
      }
    }
  }

  private void flush(int partition) throws IOException {
    int flushed = builders.rows(partition);
    long bytes = builders.flush(partition, false);
    if (flushed > 0) {
      slice.sample(bytes, flushed);
    }
  }

  private void sample() {
    long bytes = 0;
    long sampled = 0;
    for (int group = 0; group < selection.groups(); group++) {
      bytes += builders.measure(selection.partition(group));
      sampled += builders.rows(selection.partition(group));
    }
    slice.sample(bytes, sampled);
  }

  /** Appends rows in two halves, because together they exceed 32-bit offsets or a chunk. */
  private void split(
      ColumnarBatch batch, int[] ids, int start, int end, BatchTooLargeException cause)
      throws IOException {
    boolean empty = true;
    for (int group = 0; group < selection.groups(); group++) {
      int partition = selection.partition(group);
      builders.rollBack(partition);
      empty &= builders.rows(partition) == 0;
      builders.flush(partition, true);
    }
    if (end - start > 1) {
      int middle = (start + end) >>> 1;
      append(batch, ids, start, middle);
      append(batch, ids, middle, end);
    } else if (empty) {
      throw tooLarge(cause);
    } else {
      append(batch, ids, start, end);
    }
  }

  private static IOException tooLarge(BatchTooLargeException cause) {
    return new IOException(
        "A single row, or a value of it, has more than "
            + (BatchTooLargeException.LIMIT + " bytes or elements, which no batch can hold.")
            + " Set spark.weft.route=rows for this query",
        cause);
  }

  /**
   * Appends a row.
   *
   * @param row with the schema's columns in the schema's order; free to change afterwards
   * @param partition 0 to partitions - 1
   * @throws IOException if the output has no room for a chunk
   */
  public void append(InternalRow row, int partition) throws IOException {
    if (builders.rows(partition) >= slice.chunkRows()) {
      flush(partition);
    }
    try {
      builders.append(row, partition);
    } catch (BatchTooLargeException e) {
      again(row, partition, e);
    }
    rows++;
    if (slice.wantsSample()) {
      slice.sample(builders.measure(partition), builders.rows(partition));
    }
    flushOverBudget();
  }

  private void again(InternalRow row, int partition, BatchTooLargeException cause)
      throws IOException {
    builders.rollBack(partition);
    if (builders.rows(partition) == 0) {
      throw tooLarge(cause);
    }
    builders.flush(partition, true);
    try {
      builders.append(row, partition);
    } catch (BatchTooLargeException e) {
      throw tooLarge(e);
    }
  }

  /** Keeps the builders' memory within its budget. */
  private void flushOverBudget() throws IOException {
    if (pool.usedBytes() <= targetBytes) {
      return;
    }
    builders.flushLargest();
    boolean stillMuch = pool.usedBytes() > targetBytes / 4 * 3;
    // Frees buffers of sizes that are no longer in use.
    boolean scattered = pool.reservedBytes() > 2 * targetBytes + BufferPool.BLOCK_BYTES;
    if (stillMuch || scattered) {
      builders.flushAll(true);
    }
    if (scattered) {
      pool.trim(targetBytes);
    }
  }

  /** Flushes the remaining rows of every partition. */
  public void finish() throws IOException {
    builders.flushAll(false);
  }

  /** Rows appended so far. */
  public long rows() {
    return rows;
  }

  /** Bytes of the rows of all flushed batches in Spark's packed format. */
  public long packedBytes() {
    return builders.packedBytes();
  }

  /** Batches written to the output so far. */
  public long batches() {
    return builders.batches();
  }

  /** Bytes of memory that the builders use. */
  long builderBytes() {
    return pool.usedBytes();
  }

  /** Bytes of memory that the builders have allocated. */
  long reservedBytes() {
    return pool.reservedBytes();
  }

  /** Frees the builders' memory. Rows that were not flushed are lost. Idempotent. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      pool.close();
    }
  }

  /** Observes the chunks of a scatter before they are committed. */
  @FunctionalInterface
  public interface ChunkListener {
    /**
     * A chunk was written.
     *
     * @param address of the chunk, readable during the call
     * @param bytes of the chunk
     * @param packedBytes bytes of its rows in Spark's packed format
     */
    void written(int partition, long address, long bytes, int rows, long packedBytes);
  }

  /**
   * Adapts the rows of a slice (the rows appended at once) and the rows of a chunk to the size of
   * rows, so that neither has too many bytes.
   */
  static final class SliceSize {
    /** Rows of the first slice, before the size of rows is known. */
    private static final int FIRST_ROWS = 256;

    /**
     * Target bytes of a chunk. Larger chunks do not make reading faster, and their builders exceed
     * a core's caches.
     */
    private static final long CHUNK_BYTES = 512L << 10;

    private final int partitions;
    private final int maxRows;
    private final long sliceBytes;
    private int rows;
    private int chunkRows;
    private long nextSample = 1;
    private long slices;

    /**
     * @param partitions number of partitions
     * @param maxRows maximum rows of a slice or a chunk, at least 1
     * @param sliceBytes target bytes of a slice
     */
    SliceSize(int partitions, int maxRows, long sliceBytes) {
      this.partitions = partitions;
      this.maxRows = maxRows;
      this.sliceBytes = sliceBytes;
      this.rows = Math.min(maxRows, FIRST_ROWS);
      this.chunkRows = maxRows;
    }

    /** Rows of the next slice, at least 1. */
    int rows() {
      return rows;
    }

    /** Rows of a full chunk, at least 1. */
    int chunkRows() {
      return chunkRows;
    }

    /** Counts a slice. Returns whether to take a sample, at growing intervals. */
    boolean wantsSample() {
      if (++slices < nextSample) {
        return false;
      }
      nextSample = 2 * slices;
      return true;
    }

    /** Records the size of sampled rows. */
    void sample(long bytes, long sampledRows) {
      long bytesPerRow = Math.max(1, bytes / Math.max(1, sampledRows));
      chunkRows = rows(CHUNK_BYTES / bytesPerRow);
      rows = rows(Math.min(sliceBytes / bytesPerRow, (long) chunkRows * partitions));
    }

    private int rows(long wanted) {
      return (int) Math.max(1, Math.min(maxRows, wanted));
    }
  }
}
