package io.weft.spark.shuffle;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Why shuffles were left to Spark's sort shuffle, and how often. Lives on the driver, where
 * shuffles are registered. Thread-safe.
 */
public final class Fallbacks {
  private static final Logger LOG = LoggerFactory.getLogger(Fallbacks.class);

  private final ConcurrentMap<String, Long> counts = new ConcurrentHashMap<>();

  /**
   * Counts one shuffle, and logs the reason if it is new.
   *
   * @param reason the end of "Spark's sort shuffle carries it, because …"; of few different texts
   */
  public void record(String reason) {
    if (counts.merge(reason, 1L, Long::sum) == 1) {
      LOG.info("Spark's sort shuffle carries a shuffle that Weft does not take: {}", reason);
    }
  }

  /** Shuffles by reason so far. */
  public Map<String, Long> counts() {
    return new TreeMap<>(counts);
  }
}
