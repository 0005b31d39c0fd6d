package io.weft.suites;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Spark tests that are not expected to pass with Weft, each with the reason. They run nevertheless:
 * a test that begins to pass must be removed from this list.
 */
final class Exclusions {
  private static final Map<String, String> STREAMS = new LinkedHashMap<>();
  private static final Map<String, String> SQL =
      Map.of(
          "SPARK-23207: Make repartition() generate consistent output",
          "expects sorted partitions",
          "SPARK-40407: repartition should not result in severe data skew",
          "expects less even partitions",
          "explain.sql",
          "expects plans without Weft's remarks");

  static {
    STREAMS.put(
        "shuffle with different compression settings (SPARK-3426)",
        "expects files of Spark's disk block manager");
    STREAMS.put(
        "[SPARK-4085] rerun map stage if reduce stage cannot find its local shuffle file",
        "deletes the data file of a sort shuffle, which Weft does not have");
    STREAMS.put(
        "cannot find its local shuffle file if no execution of the stage and rerun shuffle",
        "as above");
    STREAMS.put(
        "multiple simultaneous attempts for one task (SPARK-8029)",
        "writes two outputs with one map id, which no scheduler does; Weft refuses the second one");
    STREAMS.put("SPARK-36206: shuffle checksum detect disk corruption", "damages that file");
  }

  private Exclusions() {}

  /** Reasons by the name of the test. */
  static Map<String, String> of(Suite suite) {
    if (suite == Suite.STREAMS) {
      return STREAMS;
    }
    return suite == Suite.SQL ? SQL : Map.of();
  }
}
