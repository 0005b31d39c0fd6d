package io.weft.spark.collectives;

import io.weft.collectives.RankNames;
import java.util.List;

/** What the ranks of a barrier stage are called, as far as the driver has told. Thread-safe. */
final class TaskNames implements RankNames {
  private volatile List<String> names = List.of();

  /** Takes what the driver knows now, unless that is nothing. */
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
