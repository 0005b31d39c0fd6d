package io.weft.spark.columns;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import java.io.InterruptedIOException;
import org.apache.spark.sql.types.StructType;

/** Copies runs of rows of several chunks into a new chunk. For one task thread. */
public final class ChunkGather implements AutoCloseable {
  private final ColumnBuilder[] builders;
  private final int nodes;
  private final BufferPool pool = BufferPool.borrow();
  private final ChunkWriter writer = new ChunkWriter();
  private int rows;
  private boolean closed;

  /** Opens a gather of chunks of a schema. */
  public ChunkGather(StructType schema) {
    ColumnarSchema layout = ColumnarSchema.of(schema);
    BuilderContext context = new BuilderContext(pool, 1);
    this.builders =
        layout.columns().stream()
            .map(column -> ColumnBuilder.of(column, context))
            .toArray(ColumnBuilder[]::new);
    this.nodes = layout.nodes();
  }

  /** Copies contiguous rows of a chunk, which may be freed afterwards. */
  public void append(ChunkView chunk, int start, int count) {
    for (int i = 0; i < builders.length; i++) {
      builders[i].appendRun(chunk.column(i), start, count, 0);
    }
    rows += count;
  }

  /**
   * Writes the appended rows, which may be none, as a chunk and starts a new one.
   *
   * @return the chunk, exactly as long as its content; the caller frees it
   */
  public Extent write(SharedArena arena) throws ArenaFullException, InterruptedIOException {
    long bytes = ChunkFormat.headerBytes(nodes);
    for (ColumnBuilder builder : builders) {
      bytes += builder.measure(0);
    }
    Extent chunk = arena.trim(arena.allocate(bytes, Use.RETAINED), bytes);
    writer.begin(chunk.address(), rows, nodes, bytes);
    for (ColumnBuilder builder : builders) {
      builder.write(0, writer);
      builder.clear(0, false);
    }
    writer.end();
    rows = 0;
    return chunk;
  }

  /** Frees the builders' memory. Idempotent. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      pool.close();
    }
  }
}
