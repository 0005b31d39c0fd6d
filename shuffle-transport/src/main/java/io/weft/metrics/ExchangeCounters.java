package io.weft.metrics;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** The running values behind {@link ExchangeCounter}. Thread-safe and cheap to raise. */
public final class ExchangeCounters {
  private final Map<ExchangeCounter, LongAdder> values = new EnumMap<>(ExchangeCounter.class);

  /** All counters at zero. */
  public ExchangeCounters() {
    for (ExchangeCounter counter : ExchangeCounter.values()) {
      values.put(counter, new LongAdder());
    }
  }

  /** Raises a counter. */
  public void add(ExchangeCounter counter, long amount) {
    values.get(counter).add(amount);
  }

  /** Raises a counter by one. */
  public void increment(ExchangeCounter counter) {
    add(counter, 1);
  }

  /** The value now. */
  public long get(ExchangeCounter counter) {
    return values.get(counter).sum();
  }

  /** Every counter's value; not one instant for all of them. */
  public Map<ExchangeCounter, Long> snapshot() {
    Map<ExchangeCounter, Long> snapshot = new EnumMap<>(ExchangeCounter.class);
    for (ExchangeCounter counter : ExchangeCounter.values()) {
      snapshot.put(counter, get(counter));
    }
    return snapshot;
  }
}
