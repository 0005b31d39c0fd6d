package io.weft.spark.columns;

/**
 * Adapts the rows of a slice (the rows appended at once) and the rows of a chunk to the size of
 * rows, so that neither has too many bytes.
 */
final class SliceSize {
  /** Rows of the first slice, before the size of rows is known. */
  private static final int FIRST_ROWS = 256;

  /**
   * Target bytes of a chunk. Larger chunks do not make reading faster, and their builders exceed a
   * core's caches.
   */
  private static final long CHUNK_BYTES = 512L << 10;

  private final int partitions;
  private final int maxRows;
  private final long sliceBytes;
  private int rows;
  private int chunkRows;
  private long nextSample = 1;
  private long slices;

  /**
   * @param partitions number of partitions
   * @param maxRows maximum rows of a slice or a chunk, at least 1
   * @param sliceBytes target bytes of a slice
   */
  SliceSize(int partitions, int maxRows, long sliceBytes) {
    this.partitions = partitions;
    this.maxRows = maxRows;
    this.sliceBytes = sliceBytes;
    this.rows = Math.min(maxRows, FIRST_ROWS);
    this.chunkRows = maxRows;
  }

  /** Rows of the next slice, at least 1. */
  int rows() {
    return rows;
  }

  /** Rows of a full chunk, at least 1. */
  int chunkRows() {
    return chunkRows;
  }

  /** Counts a slice. Returns whether to take a sample, at growing intervals. */
  boolean wantsSample() {
    if (++slices < nextSample) {
      return false;
    }
    nextSample = 2 * slices;
    return true;
  }

  /** Records the size of sampled rows. */
  void sample(long bytes, long sampledRows) {
    long bytesPerRow = Math.max(1, bytes / Math.max(1, sampledRows));
    chunkRows = rows(CHUNK_BYTES / bytesPerRow);
    rows = rows(Math.min(sliceBytes / bytesPerRow, (long) chunkRows * partitions));
  }

  private int rows(long wanted) {
    return (int) Math.max(1, Math.min(maxRows, wanted));
  }
}
