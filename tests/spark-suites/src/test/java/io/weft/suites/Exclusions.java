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

  private Exclusions() {}

  /** Reasons by the name of the test. */
  static Map<String, String> of(Suite suite) {
    return suite == Suite.SHUFFLE ? SHUFFLE : ADAPTIVE;
  }
}
