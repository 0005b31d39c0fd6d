package io.weft.spark.shuffle;

import io.weft.spark.config.WeftSettings;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts failed writes and fetches of Weft on the driver. At the limit, new shuffles are left to
 * Spark's sort shuffle until the application ends. Thread-safe.
 */
public final class ShuffleFailures {
  private static final Logger LOG = LoggerFactory.getLogger(ShuffleFailures.class);

  private final int limit;
  private volatile int count;
  private volatile Optional<String> refusal = Optional.empty();

  /**
   * Starts without failures.
   *
   * @param limit at which new shuffles are left to Spark; 0 for never
   */
  ShuffleFailures(int limit) {
    this.limit = limit;
  }

  /**
   * Counts a failure.
   *
   * @param what failed and why, in one line
   */
  public synchronized void count(String what) {
    count++;
    if (count == limit) {
      refusal =
          Optional.of(
              "Weft failed " + count + " times (" + WeftSettings.FALLBACK_FAILURES.key() + ")");
      LOG.warn(
          "New shuffles of this application use Spark's sort shuffle: {}. The last failure: {}",
          refusal.get(),
          what);
    }
  }

  /** The number of counted failures. */
  public int count() {
    return count;
  }

  /** Why new shuffles are left to Spark, as a clause; empty while Weft takes them. */
  public Optional<String> refusal() {
    return refusal;
  }
}
