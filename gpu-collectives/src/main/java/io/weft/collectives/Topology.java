package io.weft.collectives;

import java.util.List;

/**
 * Which ranks share memory. Immutable, the same on every rank.
 *
 * @param hosts the ranks of each host in ascending order; hosts by their lowest rank
 */
public record Topology(List<List<Integer>> hosts) {
  public Topology {
    hosts = hosts.stream().map(List::copyOf).toList();
  }

  /** Index of the rank's host within {@link #hosts()}. */
  public int hostOf(int rank) {
    for (int host = 0; host < hosts.size(); host++) {
      if (hosts.get(host).contains(rank)) {
        return host;
      }
    }
    throw new IllegalArgumentException("rank " + rank + " is on none of the hosts " + hosts);
  }

  /** Whether all ranks share memory. */
  public boolean isOneHost() {
    return hosts.size() == 1;
  }

  /** Whether no two ranks share memory. */
  public boolean isAllApart() {
    return hosts.stream().allMatch(ranks -> ranks.size() == 1);
  }
}
