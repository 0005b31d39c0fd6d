package io.weft.crosshost;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** The running values behind {@link TransferCounter}. Thread-safe and cheap to increment. */
final class TransferCounters {
  private final Map<TransferCounter, LongAdder> values = new EnumMap<>(TransferCounter.class);

  TransferCounters() {
    for (TransferCounter counter : TransferCounter.values()) {
      values.put(counter, new LongAdder());
    }
  }

  void add(TransferCounter counter, long amount) {
    values.get(counter).add(amount);
  }

  void increment(TransferCounter counter) {
    add(counter, 1);
  }

  /** The value of every counter. The values are not read at the same instant. */
  Map<TransferCounter, Long> snapshot() {
    Map<TransferCounter, Long> snapshot = new EnumMap<>(TransferCounter.class);
    values.forEach((counter, value) -> snapshot.put(counter, value.sum()));
    return snapshot;
  }
}
