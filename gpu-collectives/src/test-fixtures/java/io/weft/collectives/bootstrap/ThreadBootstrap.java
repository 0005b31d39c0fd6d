package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** A bootstrap for ranks that are threads of this process. */
public final class ThreadBootstrap implements Bootstrap {
  /** The state that the ranks of one rendezvous share. */
  private record Shared(
      UniqueId id,
      int nranks,
      ConcurrentMap<String, ThreadRendezvous<byte[], List<byte[]>>> rounds) {
    ThreadRendezvous<byte[], List<byte[]>> round(String name) {
      return rounds.computeIfAbsent(
          name, key -> new ThreadRendezvous<>("round " + name + " of " + id, nranks, List::copyOf));
    }
  }

  private final Shared shared;
  private final int rank;

  private ThreadBootstrap(Shared shared, int rank) {
    this.shared = shared;
    this.rank = rank;
  }

  /**
   * Opens one end for each of nranks threads, with a new unique id.
   *
   * @param nranks 1 or more
   */
  public static List<Bootstrap> open(int nranks) {
    Shared shared = new Shared(UniqueId.create(), nranks, new ConcurrentHashMap<>());
    List<Bootstrap> ends = new ArrayList<>();
    for (int rank = 0; rank < nranks; rank++) {
      ends.add(new ThreadBootstrap(shared, rank));
    }
    return ends;
  }

  @Override
  public UniqueId id() {
    return shared.id();
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int nranks() {
    return shared.nranks();
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    return shared.round(round).arrive(rank, mine, deadline);
  }

  /** Does nothing: the rounds hold no resources. */
  @Override
  public void close() {
    // No resources to release.
  }
}
