package io.weft.collectives.clique;

import io.weft.collectives.fault.CollectiveException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The cliques a piece of work needs, collected before any is acquired. They are acquired larger
 * first and those of one size in the order in which they were requested first, never in a hash
 * order: members that acquire several then all do so in the same order.
 *
 * <p>Not thread-safe.
 */
public final class CliqueRequests {
  private final Map<CliqueKey, List<List<CliqueMember>>> requests = new LinkedHashMap<>();

  /**
   * Requests a clique.
   *
   * @param members by rank; none is no request
   * @param groups how the operation divides all devices, this clique being one of the groups; the
   *     same each time a clique is requested
   * @throws CollectiveException of kind INVALID when the same clique was requested with others
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
