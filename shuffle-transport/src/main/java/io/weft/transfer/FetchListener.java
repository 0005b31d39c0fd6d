package io.weft.transfer;

/**
 * Hears what a {@link ChunkReader} read and by which way, for Spark's task metrics. Called on the
 * reader's thread only; must not block. A block is one non-empty partition of one map output.
 */
public interface FetchListener {
  /** Hears nothing. */
  FetchListener NONE =
      new FetchListener() {
        @Override
        public void local(int blocks, long bytes) {}

        @Override
        public void sameHost(int blocks, long bytes) {}

        @Override
        public void remote(int blocks, long bytes) {}

        @Override
        public void waited(long nanos) {}
      };

  /** Blocks of this executor, read in place. */
  void local(int blocks, long bytes);

  /** Blocks of another executor on this host, read in place. */
  void sameHost(int blocks, long bytes);

  /** Blocks that came over the network. */
  void remote(int blocks, long bytes);

  /** The reader stood still for so long because no chunk had arrived. */
  void waited(long nanos);
}
