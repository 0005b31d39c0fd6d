package io.weft.transfers;

import io.weft.collectives.clique.CliqueStatistics;
import io.weft.transfers.ReceiveMemory.BufferStatistics;
import java.util.Map;

/**
 * The counters of an executor's transfers at one moment. Immutable.
 *
 * @param counts of every {@link TransferCounter}
 * @param cliques of the cache of communicators
 * @param buffers of the receive buffers
 */
public record TransferStatistics(
    Map<TransferCounter, Long> counts, CliqueStatistics cliques, BufferStatistics buffers) {
  public TransferStatistics {
    counts = Map.copyOf(counts);
  }

  public long get(TransferCounter counter) {
    return counts.get(counter);
  }
}
