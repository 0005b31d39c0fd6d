package io.weft.spark.metrics;

/** What the feeds of an executor count, each from its start. */
public enum FeedCounter {
  BATCHES_IN_PLACE("batches that ranks read where the exchange put them"),
  BATCHES_GATHERED("batches put together from the remainders of map tasks"),
  ROWS_GATHERED("rows copied for these"),
  BYTES_GATHERED("bytes copied for these"),
  FILES_EXPORTED("Arrow files written for other processes"),
  BYTES_EXPORTED("bytes of these"),
  GPU_BATCHES("batches uploaded to the GPU"),
  GPU_BYTES("bytes of these");

  private final String description;

  FeedCounter(String description) {
    this.description = description;
  }

  /** One line for a table of metrics. */
  public String description() {
    return description;
  }
}
