package io.weft.spark.shuffle;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts shuffles that fell back to another path, by reason. Used on the driver, where shuffles are
 * registered. Thread-safe.
 */
public final class Fallbacks {
  private static final Logger LOG = LoggerFactory.getLogger(Fallbacks.class);

  private final ConcurrentMap<String, Long> counts = new ConcurrentHashMap<>();
  private final String what;

  /**
   * Starts without counts.
   *
   * @param what falls back, for the log
   */
  Fallbacks(String what) {
    this.what = what;
  }

  /**
   * Counts one shuffle, and logs the reason if it is new.
   *
   * @param reason the reason as a clause; there must be few different ones
   */
  public void record(String reason) {
    if (counts.merge(reason, 1L, Long::sum) == 1) {
      LOG.info("{}: {}", what, reason);
    }
  }

  /** Number of shuffles by reason. */
  public Map<String, Long> counts() {
    return new TreeMap<>(counts);
  }
}
