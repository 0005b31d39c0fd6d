package io.weft.collectives.host;

import io.weft.collectives.Topology;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Finds out which ranks share a host. The same kernel is not enough, since containers on one kernel
 * may have different file systems. Each of two ranks also has to read the other's token in the
 * other's folder.
 */
final class HostMap {
  private HostMap() {}

  /** The ranks whose token this rank reads in their folder, itself included. */
  static BitSet reachable(List<RankAddress> ranks, RankAddress own) {
    BitSet reachable = new BitSet(ranks.size());
    for (int rank = 0; rank < ranks.size(); rank++) {
      RankAddress other = ranks.get(rank);
      reachable.set(rank, other.hostIdentity().equals(own.hostIdentity()) && readsToken(other));
    }
    return reachable;
  }

  private static boolean readsToken(RankAddress rank) {
    try {
      return Files.readString(Path.of(rank.folder(), RankFolder.TOKEN)).equals(rank.token());
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * Groups the ranks by host: two ranks are on one host if they reach each other and the same set
   * of ranks. The result is the same on every rank.
   *
   * @param reachable by rank
   */
  static Topology topology(List<BitSet> reachable) {
    List<List<Integer>> hosts = new ArrayList<>();
    for (int rank = 0; rank < reachable.size(); rank++) {
      List<Integer> host = hostOf(rank, hosts, reachable);
      if (host.isEmpty()) {
        hosts.add(host);
      }
      host.add(rank);
    }
    return new Topology(hosts);
  }

  private static List<Integer> hostOf(int rank, List<List<Integer>> hosts, List<BitSet> reachable) {
    for (List<Integer> host : hosts) {
      int first = host.get(0);
      boolean mutual = reachable.get(rank).get(first) && reachable.get(first).get(rank);
      if (mutual && reachable.get(rank).equals(reachable.get(first))) {
        return host;
      }
    }
    return new ArrayList<>();
  }
}
