package io.weft.spark.columns;

import org.apache.spark.sql.types.StructType;

/**
 * The columns of a chunk that holds a single batch, read where they lie. It owns nothing: whoever
 * made it keeps the chunk for as long as it is read. Immutable; for any thread.
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
   * Looks at a chunk. Buffers are checked to lie within it, values are not looked at.
   *
   * @param schema that it was written with
   * @param address of its first byte
   * @param length its bytes
   * @param name for the error
   * @throws IllegalStateException if it is not such a chunk
   */
  public static ChunkView of(StructType schema, long address, long length, String name) {
    ColumnarSchema layout = ColumnarSchema.of(schema);
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

  /** Where the chunk starts, a multiple of 64. */
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

  public BlockColumnVector column(int ordinal) {
    return columns[ordinal];
  }

  /** A chunk by itself. */
  private record OneChunk(long address, long length, String describe) implements ChunkSource {
    @Override
    public boolean next() {
      return false;
    }

    @Override
    public void close() {
      // Nothing is owned.
    }
  }
}
