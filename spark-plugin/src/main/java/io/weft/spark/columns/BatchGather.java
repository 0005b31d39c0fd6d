package io.weft.spark.columns;

import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Gathers small batches into larger ones. For one task thread. */
final class BatchGather implements AutoCloseable {
  private static final long MAX_BYTES = 16L << 20;

  private final int maxRows;
  private final BufferPool pool = BufferPool.borrow();
  private final ColumnBuilder[] builders;
  private final BlockColumnVector[] vectors;
  private final ColumnarBatch batch;
  private int rows;
  private long bytes;

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

  /** Frees the memory. */
  @Override
  public void close() {
    pool.close();
  }
}
