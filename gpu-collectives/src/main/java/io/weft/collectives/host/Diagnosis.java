package io.weft.collectives.host;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Finds the ranks at fault when a deadline has passed. The rank that this one waits for may itself
 * wait for another, and so on. The failure names the rank at the end of this chain.
 */
final class Diagnosis {
  private final int me;
  private final StatusSource source;

  Diagnosis(int me, StatusSource source) {
    this.me = me;
    this.source = source;
  }

  /**
   * The failure to throw.
   *
   * @param awaited the ranks that this one waits for
   */
  CollectiveException of(Call call, List<Integer> awaited) {
    Set<Integer> culprits = new TreeSet<>();
    for (int rank : awaited) {
      Optional<CollectiveException> found = follow(call, rank, culprits);
      if (found.isPresent()) {
        return found.get();
      }
    }
    return timeout(call, List.copyOf(culprits), awaited);
  }

  /**
   * Follows the chain of waiting ranks. Adds the last one to the culprits, or returns a failure
   * that explains the timeout.
   */
  private Optional<CollectiveException> follow(Call call, int first, Set<Integer> culprits) {
    Set<Integer> seen = new LinkedHashSet<>(List.of(me));
    int rank = first;
    while (true) {
      RankStatus status = source.status(rank);
      if (status.failure().isPresent()) {
        return status.failure();
      }
      if (status.state() == RankStatus.State.CLOSED) {
        return Optional.of(closed(call, rank));
      }
      seen.add(rank);
      int next = status.waiting().map(WaitStatus::rank).orElse(rank);
      if (next == rank || seen.contains(next)) {
        culprits.add(next == me ? first : rank);
        return Optional.empty();
      }
      rank = next;
    }
  }

  /** The failure when a rank that is still needed has closed its communicator. */
  static CollectiveException closed(Call call, int rank) {
    return new CollectiveException(
        Kind.CLOSED,
        List.of(rank),
        "rank " + rank + " closed its communicator before it reached " + call);
  }

  private CollectiveException timeout(Call call, List<Integer> culprits, List<Integer> awaited) {
    String chain =
        culprits.equals(awaited)
            ? ""
            : ", and " + CollectiveException.name(awaited) + " with it, waiting for each other";
    return new CollectiveException(
        Kind.TIMEOUT,
        culprits,
        CollectiveException.name(culprits)
            + " did not do the part of "
            + call
            + " that rank "
            + me
            + " waited for within "
            + call.deadline()
            + chain);
  }
}
