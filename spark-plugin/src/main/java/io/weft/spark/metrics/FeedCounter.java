package io.weft.spark.metrics;

/** Counters of an executor's feeds, from the executor's start. */
public enum FeedCounter {
  BATCHES_IN_PLACE("batches that ranks read in place"),
  BATCHES_GATHERED("batches gathered from the remainders of map tasks"),
  ROWS_GATHERED("rows copied for gathered batches"),
  BYTES_GATHERED("bytes copied for gathered batches"),
  FILES_EXPORTED("Arrow files written for other processes"),
  BYTES_EXPORTED("bytes of exported files"),
  GPU_BATCHES("batches uploaded to the GPU"),
  GPU_BYTES("bytes of batches uploaded to the GPU");

  private final String description;

  FeedCounter(String description) {
    this.description = description;
  }

  /** The description, in one line. */
  public String description() {
    return description;
  }
}
