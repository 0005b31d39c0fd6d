package io.weft.spark.columns;

import io.weft.catalog.MapOutputWriter;
import io.weft.memory.Extent;
import java.io.IOException;

/** Receives a scatter's chunks. */
interface ChunkSink {
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
