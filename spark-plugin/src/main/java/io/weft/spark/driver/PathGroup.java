package io.weft.spark.driver;

import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PathRules.PathChoice;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.ui.Overview.PathRow;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Pairs of executors that use the same path for the same reason.
 *
 * @param what they exchange
 * @param choice the path and its reason
 * @param pairs number of pairs
 * @param example the first pair, such as "1 and 2"
 */
record PathGroup(String what, PathChoice choice, long pairs, String example) {
  /** Maximum number of executors whose pairs are grouped. Further executors are left out. */
  public static final int MAX_EXECUTORS = 200;

  private static final String BLOCKS = "blocks of shuffles";
  private static final String ARRAYS = "arrays of tasks";

  /** The key of a group. */
  private record Kind(String what, PathChoice choice) {}

  /** Groups all pairs of these executors, in the order of their first pairs. */
  public static List<PathGroup> of(List<PeerAddress> executors, PathRules rules) {
    Map<Kind, PathGroup> groups = new LinkedHashMap<>();
    int count = Math.min(executors.size(), MAX_EXECUTORS);
    for (int second = 1; second < count; second++) {
      for (int first = 0; first < second; first++) {
        between(executors.get(first), executors.get(second), rules)
            .forEach(group -> groups.merge(group.kind(), group, PathGroup::plus));
      }
    }
    return new ArrayList<>(groups.values());
  }

  /** Returns the two groups of one pair. */
  static List<PathGroup> between(PeerAddress one, PeerAddress other, PathRules rules) {
    String pair = one.executorId() + " and " + other.executorId();
    return List.of(
        new PathGroup(BLOCKS, rules.blocks(one.pathEnd(), other.pathEnd()), 1, pair),
        new PathGroup(ARRAYS, rules.arrays(one.pathEnd(), other.pathEnd()), 1, pair));
  }

  /** The title of the table of paths, with the number of executors in it if not all are. */
  static String title(int executors) {
    String title = "Between executors";
    return executors > MAX_EXECUTORS
        ? "%s (%d of %d)".formatted(title, MAX_EXECUTORS, executors)
        : title;
  }

  /** The group as a row of the Weft tab. */
  PathRow row() {
    return new PathRow(what, choice.path().toString(), choice.reason(), pairs, example);
  }

  private Kind kind() {
    return new Kind(what, choice);
  }

  private PathGroup plus(PathGroup more) {
    return new PathGroup(what, choice, pairs + more.pairs(), example);
  }

  /** A text such as "blocks of shuffles go by shm (both run on one kernel)". */
  @Override
  public String toString() {
    return what + " go by " + choice;
  }
}
