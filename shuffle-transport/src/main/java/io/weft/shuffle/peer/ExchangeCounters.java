package io.weft.shuffle.peer;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** Holds the values of {@link ExchangeCounter}s. Thread-safe; adding is cheap. */
public final class ExchangeCounters {
  private final Map<ExchangeCounter, LongAdder> values = new EnumMap<>(ExchangeCounter.class);
  private final Traffic traffic = new Traffic();

  /** Starts all counters at zero. */
  public ExchangeCounters() {
    for (ExchangeCounter counter : ExchangeCounter.values()) {
      values.put(counter, new LongAdder());
    }
  }

  /** The same bytes by shuffle and by peer, as far as they were not reported. */
  public Traffic traffic() {
    return traffic;
  }

  /** Adds to a counter. */
  public void add(ExchangeCounter counter, long amount) {
    values.get(counter).add(amount);
  }

  /** Adds one to a counter. */
  public void increment(ExchangeCounter counter) {
    add(counter, 1);
  }

  /** The current value of a counter. */
  public long get(ExchangeCounter counter) {
    return values.get(counter).sum();
  }

  /** The values of all counters. They are not read at the same instant. */
  public Map<ExchangeCounter, Long> snapshot() {
    Map<ExchangeCounter, Long> snapshot = new EnumMap<>(ExchangeCounter.class);
    for (ExchangeCounter counter : ExchangeCounter.values()) {
      snapshot.put(counter, get(counter));
    }
    return snapshot;
  }
}
