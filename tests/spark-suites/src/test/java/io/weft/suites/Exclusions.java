package io.weft.suites;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Spark tests that are not expected to pass with Weft, each with the reason. They run nevertheless:
 * a test that begins to pass must be removed from this list.
 */
final class Exclusions {
  private static final Map<String, String> SHUFFLE = new LinkedHashMap<>();
  private static final Map<String, String> ADAPTIVE = new LinkedHashMap<>();

  static {
    ADAPTIVE.put(
        "metrics of the shuffle read",
        "expects the number of splits that the sizes of compressed blocks lead to; "
            + "Weft's blocks are not compressed, and its sizes lead to more");
    ADAPTIVE.put(
        "SPARK-34091: Batch shuffle fetch in AQE partition coalescing",
        "expects fewer blocks to be counted when adjacent ones are fetched as one; Weft "
            + "counts every block, as it fetches none of its own host");
    ADAPTIVE.put(
        "SPARK-35264: Support AQE side shuffled hash join formula",
        "its threshold for hash joins is just above the sizes of compressed blocks; "
            + "Weft's blocks are not compressed");
    ADAPTIVE.put(
        "SPARK-35725: Support optimize skewed partitions in RebalancePartitions",
        "expects the number of splits that the sizes of compressed blocks lead to; "
            + "Weft's blocks are not compressed");
    ADAPTIVE.put(
        "SPARK-37357: Add small partition factor for rebalance partitions",
        "its threshold for small partitions is between the sizes of compressed blocks; "
            + "Weft's blocks are not compressed");
  }

  private Exclusions() {}

  /** Reasons by the name of the test. */
  static Map<String, String> of(Suite suite) {
    return suite == Suite.SHUFFLE ? SHUFFLE : ADAPTIVE;
  }
}
