package io.weft.spark.metrics;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** The counters of all feeds of this JVM. Thread-safe. */
public final class FeedCounters {
  private static final Map<FeedCounter, LongAdder> COUNTS = new EnumMap<>(FeedCounter.class);

  static {
    for (FeedCounter counter : FeedCounter.values()) {
      COUNTS.put(counter, new LongAdder());
    }
  }

  private FeedCounters() {}

  /** Adds to a counter. */
  public static void add(FeedCounter counter, long amount) {
    COUNTS.get(counter).add(amount);
  }

  /** The current count. */
  public static long get(FeedCounter counter) {
    return COUNTS.get(counter).sum();
  }
}
