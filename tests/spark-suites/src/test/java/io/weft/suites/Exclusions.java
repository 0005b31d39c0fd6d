package io.weft.suites;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Tests of Spark's that are not expected to pass with Weft on, each with the reason. They run
 * nevertheless: one that begins to pass is to be taken off this list.
 */
final class Exclusions {
  private static final Map<String, String> SHUFFLE = new LinkedHashMap<>();
  private static final Map<String, String> ADAPTIVE = new LinkedHashMap<>();

  private Exclusions() {}

  /** Reasons by the name of the test. */
  static Map<String, String> of(Suite suite) {
    return suite == Suite.SHUFFLE ? SHUFFLE : ADAPTIVE;
  }
}
