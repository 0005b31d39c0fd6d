package io.weft.spark.runtime;

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

  /** Counters of an executor's feeds, from the executor's start. */
  public enum FeedCounter {
    BATCHES_IN_PLACE("batches that ranks read in place"),
    BATCHES_GATHERED("batches gathered from the remainders of map tasks"),
    ROWS_GATHERED("rows copied for gathered batches"),
    BYTES_GATHERED("bytes of these rows"),
    FILES_EXPORTED("Arrow files written for other processes"),
    BYTES_EXPORTED("bytes of exported files"),
    GPU_BATCHES("batches uploaded to the GPU"),
    GPU_BYTES("bytes of these batches"),
    GPU_INPUT_KEPT("batches of queries on the GPU that map tasks dealt there"),
    GPU_INPUT_LEFT("such batches that were copied to the host first");

    private final String description;

    FeedCounter(String description) {
      this.description = description;
    }

    /** The description, in one line. */
    public String description() {
      return description;
    }
  }
}
