package io.weft.examples.bench.feed;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** How ranks get their tensors in the benchmark. */
enum FeedSide {
  /** A Weft feed: exchanged in memory, read in place. */
  FEED("Weft feed", Map.of()),
  /** Spark's sort shuffle and a Parquet file for each rank, as Spark writes it by default. */
  PARQUET("Spark + Parquet", Map.of()),
  /** The same without compression, which tensors of noise do not need. */
  PLAIN_PARQUET("Spark + Parquet, uncompressed", Map.of("compression", "uncompressed"));

  private final String label;

  @SuppressWarnings("ImmutableEnumChecker") // made by Map.of
  private final Map<String, String> options;

  FeedSide(String label, Map<String, String> options) {
    this.label = label;
    this.options = options;
  }

  /** What people call it. */
  String label() {
    return label;
  }

  /** Of Spark's writer of the files in between. */
  Map<String, String> options() {
    return options;
  }

  /** All of them, each the first one in its turn. */
  static List<FeedSide> order(int run) {
    List<FeedSide> sides = new ArrayList<>(List.of(values()));
    Collections.rotate(sides, -run);
    return sides;
  }
}
