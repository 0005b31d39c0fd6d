package io.weft.exchange;

import io.weft.memory.ArenaStatistics;
import io.weft.metrics.ExchangeCounter;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;

/**
 * An exchange at one moment.
 *
 * @param counters one value for each counter, from the exchange's start
 * @param arena the memory of map outputs and of transfers under way
 * @param memoryBudgetBytes of shared memory that map outputs may use
 * @param retiredBytes of removed shuffles, that wait now for their last reader
 * @param mappedPeerSegments segments of peers on this host that are mapped now
 * @param openReaders readers that were opened and not closed
 * @param receivingBytes that these readers have asked for over the network and not yet used
 * @param openStreams answers to peers that hold memory now
 * @param servedBytes of these answers
 */
public record ExchangeStatistics(
    Map<ExchangeCounter, Long> counters,
    ArenaStatistics arena,
    long memoryBudgetBytes,
    long retiredBytes,
    int mappedPeerSegments,
    int openReaders,
    long receivingBytes,
    int openStreams,
    long servedBytes) {
  public ExchangeStatistics {
    counters = Collections.unmodifiableMap(new EnumMap<>(counters));
  }

  /** The value of one counter. */
  public long get(ExchangeCounter counter) {
    return counters.get(counter);
  }
}
