package io.weft.spark.columns;

import io.weft.spark.columns.ChunkFormat.ChunkCursor;
import io.weft.spark.columns.ChunkFormat.ChunkSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The columns of a chunk with a single batch, read in place. It owns nothing: the caller keeps the
 * chunk while the view is in use. Immutable and thread-safe.
 */
public final class ChunkView {
  private final long address;
  private final long length;
  private final int rows;
  private final BlockColumnVector[] columns;

  private ChunkView(long address, long length, int rows, BlockColumnVector[] columns) {
    this.address = address;
    this.length = length;
    this.rows = rows;
    this.columns = columns;
  }

  /**
   * Opens a view of a chunk. Checks that the buffers are within the chunk, but not the values.
   *
   * @param schema schema that the chunk was written with
   * @param address of its first byte
   * @param length its bytes
   * @param name name of the chunk in errors
   * @throws IllegalStateException if the chunk is damaged or has another schema
   */
  public static ChunkView of(StructType schema, long address, long length, String name) {
    return of(ColumnarSchema.of(schema), address, length, name);
  }

  /** As the other method, for callers with many chunks of a schema. */
  static ChunkView of(ColumnarSchema layout, long address, long length, String name) {
    ChunkCursor cursor = new ChunkCursor();
    cursor.open(new OneChunk(address, length, name));
    int rows = cursor.next(layout.nodes());
    BlockColumnVector[] columns = BlockColumnVector.of(layout);
    for (BlockColumnVector column : columns) {
      column.load(cursor, rows);
    }
    cursor.end();
    if (cursor.hasNext()) {
      throw new IllegalStateException(name + " holds more than one batch");
    }
    return new ChunkView(address, length, rows, columns);
  }

  /** Address of the chunk, a multiple of 64. */
  public long address() {
    return address;
  }

  /** Bytes of the chunk. */
  public long length() {
    return length;
  }

  public int rows() {
    return rows;
  }

  public int columns() {
    return columns.length;
  }

  /** The columns as a batch. */
  public ColumnarBatch batch() {
    return new ColumnarBatch(columns.clone(), rows);
  }

  public BlockColumnVector column(int ordinal) {
    return columns[ordinal];
  }

  /** A source of a single chunk. */
  private record OneChunk(long address, long length, String describe) implements ChunkSource {
    @Override
    public boolean next() {
      return false;
    }

    @Override
    public void close() {
      // It owns nothing.
    }
  }
}
