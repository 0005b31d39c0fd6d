package io.weft.spark.columns;

import io.weft.catalog.MapOutputWriter;
import io.weft.memory.Extent;
import java.io.IOException;

/** Where a scatter's chunks go. */
interface ChunkSink {
  /** A chunk to fill. */
  Extent allocate(long bytes) throws IOException;

  /** Makes it the next chunk of a partition. */
  void commit(int partition, Extent chunk, long usedBytes, int rows);

  /** Gives back a chunk that was not committed. */
  void release(Extent chunk);

  /** The output of a map task. */
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
