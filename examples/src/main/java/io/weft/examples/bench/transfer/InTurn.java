package io.weft.examples.bench.transfer;

import io.weft.examples.measure.Spread;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Measures sides in turn: in each round every side runs once, and the side that begins changes, so
 * that a drift of the machine falls on all of them. One thread.
 *
 * @param warmUps rounds before those that count
 * @param runs rounds that count
 */
record InTurn(int warmUps, int runs) {
  List<SideFigures> measure(List<Contestant> sides) throws IOException, InterruptedException {
    Map<String, List<Cost>> costs = new LinkedHashMap<>();
    sides.forEach(side -> costs.put(side.name(), new ArrayList<>()));
    for (int round = -warmUps; round < runs; round++) {
      List<Contestant> order = new ArrayList<>(sides);
      Collections.rotate(order, round);
      for (Contestant side : order) {
        Cost cost = side.run().once();
        if (round >= 0) {
          costs.get(side.name()).add(cost);
        }
      }
    }
    return sides.stream().map(side -> figures(side.name(), costs.get(side.name()))).toList();
  }

  private static SideFigures figures(String side, List<Cost> costs) {
    return new SideFigures(
        side,
        new Spread(costs.stream().map(Cost::seconds).toList()),
        new Spread(costs.stream().map(Cost::cpuSeconds).toList()));
  }
}
