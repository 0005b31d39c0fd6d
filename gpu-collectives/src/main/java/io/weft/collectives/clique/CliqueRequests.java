package io.weft.collectives.clique;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The cliques that a piece of work needs, collected before any is acquired. Larger cliques are
 * acquired first, and cliques of one size in the order of their first request, never in a hash
 * order. So members that acquire several cliques all use the same order.
 *
 * <p>Not thread-safe.
 */
final class CliqueRequests {
  private final Map<CliqueKey, List<List<CliqueMember>>> requests = new LinkedHashMap<>();

  /**
   * Requests a clique.
   *
   * @param members by rank; an empty list requests nothing
   * @param groups the division of all devices into groups, of which this clique is one; the same
   *     each time a clique is requested
   * @throws CollectiveException of kind INVALID when the same clique was requested with other
   *     groups
   */
  public CliqueRequests add(
      List<CliqueMember> members, String purpose, List<List<CliqueMember>> groups) {
    if (members.isEmpty()) {
      return this;
    }
    CliqueKey key = new CliqueKey(members, purpose);
    List<List<CliqueMember>> copy = groups.stream().map(List::copyOf).toList();
    List<List<CliqueMember>> before = requests.putIfAbsent(key, copy);
    if (before != null && !before.equals(copy)) {
      throw CollectiveException.invalid(
          key + " was requested with device groups " + before + " and now with " + copy);
    }
    return this;
  }

  /** Requests a clique that is the only group. */
  public CliqueRequests add(List<CliqueMember> members, String purpose) {
    return add(members, purpose, List.of(members));
  }

  /** Each clique once, in the order of acquisition. */
  public List<CliqueKey> ordered() {
    List<CliqueKey> keys = new ArrayList<>(requests.keySet());
    keys.sort(Comparator.comparingInt(key -> -key.size()));
    return keys;
  }
}
