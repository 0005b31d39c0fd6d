package io.weft.examples.bench.feed;

import java.util.Map;

/** The ways to hand tensors to ranks. */
public enum FeedSide {
  /** A Weft feed: exchanged in memory, read in place. */
  FEED("Weft feed", Map.of()),
  /** Spark's sort shuffle and a Parquet file for each rank, with Spark's default compression. */
  PARQUET("Spark + Parquet", Map.of()),
  /** The same without compression: random tensors do not compress. */
  PLAIN_PARQUET("Spark + Parquet, uncompressed", Map.of("compression", "uncompressed"));

  private final String label;

  @SuppressWarnings("ImmutableEnumChecker") // made by Map.of
  private final Map<String, String> options;

  FeedSide(String label, Map<String, String> options) {
    this.label = label;
    this.options = options;
  }

  /** The name in tables. */
  String label() {
    return label;
  }

  /** Options of Spark's Parquet writer. */
  Map<String, String> options() {
    return options;
  }
}
