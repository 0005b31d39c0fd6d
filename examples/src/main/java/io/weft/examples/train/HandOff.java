package io.weft.examples.train;

/** How ranks get their rows. */
public enum HandOff {
  /** A Weft feed: exchanged in memory, read in place. */
  FEED("Weft feed"),
  /** Spark's sort shuffle, a Parquet file for each rank, and reading it. */
  PARQUET("Spark + Parquet");

  private final String label;

  HandOff(String label) {
    this.label = label;
  }

  /** What people call it. */
  public String label() {
    return label;
  }
}
