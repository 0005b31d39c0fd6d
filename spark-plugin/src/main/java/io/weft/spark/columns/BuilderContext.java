package io.weft.spark.columns;

/**
 * What the builders of one task share.
 *
 * @param pool that their buffers come from
 * @param partitions that each of them builds for
 * @param scratch for values on their way from a vector to a buffer
 */
record BuilderContext(BufferPool pool, int partitions, Scratch scratch) {
  BuilderContext(BufferPool pool, int partitions) {
    this(pool, partitions, new Scratch());
  }

  /** An array that grows; its content does not outlive the call that filled it. */
  static final class Scratch {
    private long[] words = new long[0];

    /** At least that many bytes. */
    long[] bytes(long bytes) {
      int needed = Math.toIntExact((bytes + 7) / 8);
      if (words.length < needed) {
        words = new long[Math.max(needed, Math.min(2 * words.length, 1 << 20))];
      }
      return words;
    }
  }
}
