package io.weft.shuffle;

import io.weft.memory.ArenaStatistics;
import io.weft.shuffle.peer.ExchangeCounter;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;

/**
 * A snapshot of an exchange.
 *
 * @param counters the value of each counter since the exchange was opened
 * @param arena the memory of map outputs and outstanding requests
 * @param memoryBudgetBytes limit of shared memory for map outputs
 * @param retiredBytes of removed shuffles that wait for their last reader
 * @param mappedPeerSegments number of mapped segments of peers on this host
 * @param openReaders number of open readers
 * @param receivingBytes that these readers have requested over the network and not yet used
 * @param openStreams number of answers to peers that hold memory
 * @param servedBytes bytes of these answers
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
