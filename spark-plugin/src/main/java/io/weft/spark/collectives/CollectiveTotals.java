package io.weft.spark.collectives;

import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.Communicator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Sums the counters of an executor's communicators, also of closed ones. Thread-safe. */
final class CollectiveTotals {
  private final Set<Communicator> open = Collections.newSetFromMap(new IdentityHashMap<>());
  private Map<CollectiveStatistics.Key, CollectiveMetrics.Line> closed = new HashMap<>();
  private long opened;

  synchronized void opened(Communicator communicator) {
    open.add(communicator);
    opened++;
  }

  /** Adds the counters of a communicator whose operations have ended. */
  synchronized void closed(Communicator communicator) {
    if (open.remove(communicator)) {
      closed = CollectiveStatistics.sum(closed, communicator.metrics().lines());
    }
  }

  synchronized CollectiveStatistics statistics() {
    Map<CollectiveStatistics.Key, CollectiveMetrics.Line> sum = closed;
    for (Communicator communicator : open) {
      sum = CollectiveStatistics.sum(sum, communicator.metrics().lines());
    }
    List<CollectiveMetrics.Line> lines = new ArrayList<>(sum.values());
    return new CollectiveStatistics(opened, open.size(), lines);
  }
}
