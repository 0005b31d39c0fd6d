package io.weft.examples.bench.collectives;

import java.util.List;
import java.util.Optional;

/**
 * What all sides showed in one case.
 *
 * @param sides those that have the operation, Weft first
 */
public record CaseResult(CollectiveCase test, List<SideFigures> sides) {
  public CaseResult {
    sides = List.copyOf(sides);
  }

  /** How many times faster than OpenMPI a side is; empty where that is not there. */
  public Optional<Double> timesFaster(SideFigures side) {
    return sides.stream()
        .filter(other -> other.side().equals(MpiSide.NAME) && !other.side().equals(side.side()))
        .findFirst()
        .map(mpi -> mpi.seconds().median() / side.seconds().median());
  }
}
