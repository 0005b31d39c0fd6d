package io.weft.examples.demo;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.measure.Spread;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.List;

/** The one table that the demo ends with. */
final class DemoTable {
  private DemoTable() {}

  static String render(List<QueryOutcome> outcomes) {
    TextTable table =
        new TextTable()
            .column("query", Align.LEFT)
            .columns(Align.RIGHT, "rows", "Spark s", "Weft s", "faster")
            .column("equal", Align.LEFT)
            .columns(Align.RIGHT, "own", "same host", "network", "spilled");
    outcomes.forEach(outcome -> row(table, outcome));
    table.separator();
    total(table, outcomes);
    return table.toText();
  }

  private static void row(TextTable table, QueryOutcome outcome) {
    table.row(
        "Q" + outcome.query().number(),
        Integer.toString(outcome.rows()),
        Units.seconds(outcome.spark().median()),
        Units.seconds(outcome.weft().median()),
        Units.factor(outcome.ratio()),
        outcome.difference().isEmpty() ? "yes" : "NO",
        Units.bytes(outcome.moved().ownBytes()),
        Units.bytes(outcome.moved().sameHostBytes()),
        Units.bytes(outcome.moved().networkBytes()),
        Units.bytes(outcome.moved().spilledBytes()));
  }

  private static void total(TextTable table, List<QueryOutcome> outcomes) {
    ExecutorTotals moved = moved(outcomes);
    long equal = outcomes.stream().filter(outcome -> outcome.difference().isEmpty()).count();
    table.row(
        "all",
        "",
        Units.seconds(outcomes.stream().mapToDouble(o -> o.spark().median()).sum()),
        Units.seconds(outcomes.stream().mapToDouble(o -> o.weft().median()).sum()),
        Units.factor(meanRatio(outcomes)),
        equal + " of " + outcomes.size(),
        Units.bytes(moved.ownBytes()),
        Units.bytes(moved.sameHostBytes()),
        Units.bytes(moved.networkBytes()),
        Units.bytes(moved.spilledBytes()));
  }

  /** The geometric mean of how many times faster Weft is. */
  static double meanRatio(List<QueryOutcome> outcomes) {
    return Spread.geometricMean(outcomes.stream().map(QueryOutcome::ratio).toList());
  }

  static ExecutorTotals moved(List<QueryOutcome> outcomes) {
    return outcomes.stream()
        .map(QueryOutcome::moved)
        .reduce(ExecutorTotals.NONE, ExecutorTotals::plus);
  }
}
