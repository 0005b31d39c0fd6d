package io.weft.collectives;

import io.weft.collectives.fault.CollectiveException;
import java.util.ArrayList;
import java.util.List;

/**
 * Names of ranks in failures, in addition to their numbers, such as a task, an executor and a host.
 * Implementations are thread-safe.
 */
@FunctionalInterface
public interface RankNames {
  /** No names, only numbers. */
  RankNames NONE = rank -> "";

  /** The name of a rank, such as "task 7 on executor 2 at host-a"; empty for none. */
  String of(int rank);

  /** Returns the failure with the names of the ranks at fault appended to its message, once. */
  default CollectiveException explain(CollectiveException cause) {
    List<String> added = new ArrayList<>();
    for (int rank : cause.ranks()) {
      String name = of(rank);
      if (!name.isEmpty() && !String.valueOf(cause.getMessage()).contains(name)) {
        added.add("rank " + rank + " is " + name);
      }
    }
    if (added.isEmpty()) {
      return cause;
    }
    CollectiveException explained =
        new CollectiveException(
            cause.kind(),
            cause.ranks(),
            cause.getMessage() + " (" + String.join(", ", added) + ")",
            cause.getCause());
    explained.setStackTrace(cause.getStackTrace());
    return explained;
  }
}
