package io.weft.spark.columns;

import io.weft.transfer.BlockFetchException;
import io.weft.transfer.ChunkReader;

/** Supplies a reader's chunks. A chunk stays readable until the second next() after it. */
interface ChunkSource extends AutoCloseable {
  /** Advances to the next chunk; false if there is none. */
  boolean next() throws BlockFetchException;

  long address();

  long length();

  /** Describes the chunk, for errors. */
  String describe();

  @Override
  void close();

  /** Adapts the chunks that an exchange fetches. */
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
