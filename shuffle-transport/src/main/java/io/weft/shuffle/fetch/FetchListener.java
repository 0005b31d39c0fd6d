package io.weft.shuffle.fetch;

/**
 * Receives what a {@link ChunkReader} read and by which path, for Spark's task metrics. Called on
 * the reader's thread only. Must not block. A block is one non-empty partition of one map output.
 */
public interface FetchListener {
  /** Ignores all events. */
  FetchListener NONE =
      new FetchListener() {
        @Override
        public void local(int blocks, long bytes) {}

        @Override
        public void sameHost(int blocks, long bytes) {}

        @Override
        public void remote(int outputs, int blocks, long bytes) {}

        @Override
        public void waited(long nanos) {}
      };

  /** Reports blocks of a map output of this executor, read in place. */
  void local(int blocks, long bytes);

  /** Reports blocks of a map output of another executor on this host, read in place. */
  void sameHost(int blocks, long bytes);

  /**
   * Reports blocks that came over the network.
   *
   * @param outputs map outputs whose first block is among them
   */
  void remote(int outputs, int blocks, long bytes);

  /** Reports how long the reader waited because no chunk had arrived. */
  void waited(long nanos);
}
