package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Rendezvous;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** Ranks that are threads of this process. */
public final class ThreadBootstrap implements Bootstrap {
  /** What the ranks of one meeting share. */
  private record Meeting(
      UniqueId id, int nranks, ConcurrentMap<String, Rendezvous<byte[], List<byte[]>>> rounds) {
    Rendezvous<byte[], List<byte[]>> round(String name) {
      return rounds.computeIfAbsent(
          name, key -> new Rendezvous<>("round " + name + " of " + id, nranks, List::copyOf));
    }
  }

  private final Meeting meeting;
  private final int rank;

  private ThreadBootstrap(Meeting meeting, int rank) {
    this.meeting = meeting;
    this.rank = rank;
  }

  /**
   * One end for each of nranks threads, with a new unique id.
   *
   * @param nranks 1 or more
   */
  public static List<Bootstrap> open(int nranks) {
    Meeting meeting = new Meeting(UniqueId.create(), nranks, new ConcurrentHashMap<>());
    List<Bootstrap> ends = new ArrayList<>();
    for (int rank = 0; rank < nranks; rank++) {
      ends.add(new ThreadBootstrap(meeting, rank));
    }
    return ends;
  }

  @Override
  public UniqueId id() {
    return meeting.id();
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int nranks() {
    return meeting.nranks();
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    return meeting.round(round).arrive(rank, mine, deadline);
  }

  /** Nothing to let go of: the meeting is garbage when its ends are. */
  @Override
  public void close() {
    // The rounds hold no resources.
  }
}
