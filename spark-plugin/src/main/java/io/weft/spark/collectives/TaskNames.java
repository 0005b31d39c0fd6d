package io.weft.spark.collectives;

import io.weft.collectives.CommunicatorOptions.RankNames;
import java.util.List;

/** The names of the ranks of a barrier stage, as far as the driver knows them. Thread-safe. */
final class TaskNames implements RankNames {
  private volatile List<String> names = List.of();

  /** Takes the names that the driver knows. Ignores an empty list. */
  void learn(List<String> known) {
    if (!known.isEmpty()) {
      names = known;
    }
  }

  @Override
  public String of(int rank) {
    List<String> known = names;
    return rank < known.size() ? known.get(rank) : "";
  }
}
