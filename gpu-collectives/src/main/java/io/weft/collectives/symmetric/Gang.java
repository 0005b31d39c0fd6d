package io.weft.collectives.symmetric;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The members of a communicator, in an order that does not depend on their ranks. Spark gives the
 * tasks of a barrier stage to executors in any order, so the next stage's ranks are often the same
 * members in another order. Immutable.
 *
 * @param members the names of the members by position; a process with several ranks has several
 *     positions
 * @param ranks by position
 * @param own the position of this rank
 */
record Gang(List<String> members, List<Integer> ranks, int own) {
  /**
   * Orders members by name, and members of one name by rank.
   *
   * @param names by rank
   * @param me this rank
   */
  static Gang of(List<String> names, int me) {
    List<Integer> ranks =
        IntStream.range(0, names.size())
            .boxed()
            .sorted(Comparator.<Integer, String>comparing(names::get))
            .toList();
    return new Gang(ranks.stream().map(names::get).toList(), ranks, ranks.indexOf(me));
  }

  /** The position of each rank. */
  List<Integer> positions() {
    List<Integer> positions = new ArrayList<>(ranks);
    for (int position = 0; position < ranks.size(); position++) {
      positions.set(ranks.get(position), position);
    }
    return positions;
  }

  /** Whether two communicators have the same members, and this process's ranks the same place. */
  boolean isSame(Gang other) {
    return own == other.own && members.equals(other.members);
  }
}
