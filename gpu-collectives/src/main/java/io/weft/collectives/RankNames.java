package io.weft.collectives;

import io.weft.collectives.fault.CollectiveException;
import java.util.ArrayList;
import java.util.List;

/**
 * What ranks are called in failures beyond their numbers, by whoever brought them together: a task,
 * an executor, a host. Implementations are thread-safe.
 */
@FunctionalInterface
public interface RankNames {
  /** Numbers are all there is. */
  RankNames NONE = rank -> "";

  /** Such as "task 7 on executor 2 at host-a"; empty for nothing to add. */
  String of(int rank);

  /** The failure with the names of the ranks at fault behind its message, once. */
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
