package io.weft.collectives.host;

import java.util.List;

/**
 * Ranks of a communicator that do a part of an operation together, numbered from 0, and the
 * messages between them. One thread at a time.
 */
final class Members {
  private final int me;
  private final int[] ranks;
  private final PointToPoint pairs;

  /**
   * Creates a set of ranks.
   *
   * @param rank this one, of the communicator
   * @param ranks all of the set, in the order of their numbers
   */
  Members(int rank, List<Integer> ranks, PointToPoint pairs) {
    this.me = ranks.indexOf(rank);
    this.ranks = ranks.stream().mapToInt(Integer::intValue).toArray();
    this.pairs = pairs;
  }

  /** The number of this rank; negative if it is not in the set. */
  int me() {
    return me;
  }

  int size() {
    return ranks.length;
  }

  /** The member at this distance after this one, modulo the number of members. */
  int at(int distance) {
    return Math.floorMod(me + distance, ranks.length);
  }

  /** See {@link PointToPoint#send(Call, int, int, long, long)}. */
  void send(Call call, int step, int member, long address, long bytes) {
    pairs.send(call, step, ranks[member], address, bytes);
  }

  /** See {@link PointToPoint#receive(Call, int, int, long, long)}. */
  void receive(Call call, int step, int member, long address, long bytes) {
    pairs.receive(call, step, ranks[member], address, bytes);
  }

  void awaitReceives(int member, int left) {
    pairs.awaitReceives(ranks[member], left);
  }

  void awaitSends(int member, int left) {
    pairs.awaitSends(ranks[member], left);
  }

  /** Waits until all started messages have been sent and received. */
  void finish() {
    pairs.finish();
  }
}
