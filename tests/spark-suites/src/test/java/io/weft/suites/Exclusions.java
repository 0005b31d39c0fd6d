package io.weft.suites;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Spark tests that are not expected to pass with Weft, each with the reason. They run nevertheless:
 * a test that begins to pass must be removed from this list.
 */
final class Exclusions {
  private static final Map<String, String> STREAMS = new LinkedHashMap<>();
  private static final Map<String, String> ADAPTIVE = new LinkedHashMap<>();

  static {
    STREAMS.put(
        "shuffle with different compression settings (SPARK-3426)",
        "expects files of Spark's disk block manager; Weft's records are in its arena");
    STREAMS.put(
        "[SPARK-4085] rerun map stage if reduce stage cannot find its local shuffle file",
        "deletes the data file of a sort shuffle, which Weft does not have");
    STREAMS.put(
        "cannot find its local shuffle file if no execution of the stage and rerun shuffle",
        "deletes the data file of a sort shuffle, which Weft does not have");
    STREAMS.put(
        "multiple simultaneous attempts for one task (SPARK-8029)",
        "writes two outputs with one map id, which no scheduler does; Weft refuses the second one");
    STREAMS.put(
        "SPARK-36206: shuffle checksum detect disk corruption",
        "damages the data file of a sort shuffle, which Weft does not have");
    ADAPTIVE.put(
        "metrics of the shuffle read",
        "expects exactly 11 parts of blocks of 100 rows among 100 partitions; Weft estimates their "
            + "sizes, which leads to 12");
  }

  private Exclusions() {}

  /** Reasons by the name of the test. */
  static Map<String, String> of(Suite suite) {
    return Map.of(Suite.STREAMS, STREAMS, Suite.ADAPTIVE, ADAPTIVE).getOrDefault(suite, Map.of());
  }
}
