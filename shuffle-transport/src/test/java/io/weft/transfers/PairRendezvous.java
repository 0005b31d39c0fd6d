package io.weft.transfers;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.clique.CliqueCommunicators;
import io.weft.collectives.clique.CliqueKey;
import io.weft.device.Deadline;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The rendezvous of cliques within one process. The first end waits for the other. */
final class PairRendezvous implements CliqueCommunicators.BootstrapOpener {
  private final Map<CliqueKey, Waiting> waiting = new LinkedHashMap<>();
  private int opened;

  /** The end that is not taken yet. */
  private record Waiting(int rank, Bootstrap other) {}

  @Override
  public synchronized Bootstrap open(CliqueKey key, int rank) {
    opened++;
    Waiting first = waiting.get(key);
    if (first != null && first.rank() != rank) {
      waiting.remove(key);
      return first.other();
    }
    List<Bootstrap> ends = new ArrayList<>(ThreadBootstrap.open(2));
    Waiting mine = new Waiting(rank, ends.get(1 - rank));
    waiting.put(key, mine);
    return new Leaving(ends.get(rank), () -> leave(key, mine));
  }

  /** Removes an end that has given up. */
  private synchronized void leave(CliqueKey key, Waiting mine) {
    boolean unused = waiting.remove(key, mine);
  }

  /** The number of ends that were opened. */
  synchronized int opened() {
    return opened;
  }

  private record Leaving(Bootstrap end, Runnable leave) implements Bootstrap {
    @Override
    public UniqueId id() {
      return end.id();
    }

    @Override
    public int rank() {
      return end.rank();
    }

    @Override
    public int nranks() {
      return end.nranks();
    }

    @Override
    public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
      return end.exchange(round, mine, deadline);
    }

    @Override
    public void close() {
      leave.run();
      end.close();
    }
  }
}
