package io.weft.spark.columns;

/**
 * How many rows of a batch are appended at once, and how many make a chunk, so that neither grows
 * too large in bytes, whatever the size of the rows turns out to be.
 */
final class SliceSize {
  /** Before anything is known of rows of varying size. */
  private static final int FIRST_ROWS = 256;

  /** Larger chunks make reading no faster and the builders too large for a core's caches. */
  private static final long CHUNK_BYTES = 512L << 10;

  private final int partitions;
  private final int maxRows;
  private final long sliceBytes;
  private int rows;
  private int chunkRows;
  private long nextSample = 1;
  private long slices;

  /**
   * @param partitions that a slice's rows go to
   * @param maxRows of a slice or a chunk, at least 1
   * @param sliceBytes of a slice
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

  /** Counts a slice; whether this is the time to take a sample: less and less often. */
  boolean wantsSample() {
    if (++slices < nextSample) {
      return false;
    }
    nextSample = 2 * slices;
    return true;
  }

  /** Takes note of the size of some rows. */
  void sample(long bytes, long sampledRows) {
    long bytesPerRow = Math.max(1, bytes / Math.max(1, sampledRows));
    chunkRows = rows(CHUNK_BYTES / bytesPerRow);
    rows = rows(Math.min(sliceBytes / bytesPerRow, (long) chunkRows * partitions));
  }

  private int rows(long wanted) {
    return (int) Math.max(1, Math.min(maxRows, wanted));
  }
}
