package io.weft.spark.columns;

/**
 * State that the builders of one task share.
 *
 * @param pool source of their buffers
 * @param partitions number of partitions
 * @param scratch temporary array for values between a vector and a buffer
 */
record BuilderContext(BufferPool pool, int partitions, Scratch scratch) {
  BuilderContext(BufferPool pool, int partitions) {
    this(pool, partitions, new Scratch());
  }

  /** A growing array. Its content is valid only during the call that fills it. */
  static final class Scratch {
    private long[] words = new long[0];

    /** Returns an array of at least that many bytes. */
    long[] bytes(long bytes) {
      int needed = Math.toIntExact((bytes + 7) / 8);
      if (words.length < needed) {
        words = new long[Math.max(needed, Math.min(2 * words.length, 1 << 20))];
      }
      return words;
    }
  }
}
