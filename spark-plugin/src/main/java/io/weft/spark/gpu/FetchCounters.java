package io.weft.spark.gpu;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** The counters of reads from other executors' GPUs, of this JVM. Thread-safe. */
public final class FetchCounters {
  private static final Map<FetchCounter, LongAdder> COUNTS = new EnumMap<>(FetchCounter.class);

  static {
    for (FetchCounter counter : FetchCounter.values()) {
      COUNTS.put(counter, new LongAdder());
    }
  }

  private FetchCounters() {}

  static void add(FetchCounter counter, long amount) {
    COUNTS.get(counter).add(amount);
  }

  /** The current count. */
  public static long get(FetchCounter counter) {
    return COUNTS.get(counter).sum();
  }

  /** Counters of an executor's queries, from the executor's start. */
  public enum FetchCounter {
    GROUPS("groups of blocks requested from other executors' GPUs"),
    BLOCKS("blocks of these groups"),
    GROUPS_AHEAD("of these, groups requested while earlier ones were read"),
    GROUPS_SPLIT("groups whose blocks came one by one, because receive memory was short");

    private final String description;

    FetchCounter(String description) {
      this.description = description;
    }

    /** The description, in one line. */
    public String description() {
      return description;
    }
  }
}
