package io.weft.spark.columns;

import io.weft.transfer.BlockFetchException;
import io.weft.transfer.ChunkReader;

/** Where a reader's chunks come from; a chunk stays readable until the second next() after it. */
interface ChunkSource extends AutoCloseable {
  /** Moves to the next chunk; false if there is none. */
  boolean next() throws BlockFetchException;

  long address();

  long length();

  /** Names the chunk, for errors. */
  String describe();

  @Override
  void close();

  /** The chunks that an executor's exchange fetches. */
  static ChunkSource of(ChunkReader reader) {
    return new ChunkSource() {
      @Override
      public boolean next() throws BlockFetchException {
        return reader.next();
      }

      @Override
      public long address() {
        return reader.address();
      }

      @Override
      public long length() {
        return reader.length();
      }

      @Override
      public String describe() {
        return "partition " + reader.partition() + " of " + reader.request();
      }

      @Override
      public void close() {
        reader.close();
      }
    };
  }
}
