package io.weft.examples.demo;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.measure.Spread;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.List;

/** Formats the result of the demo as a table. */
final class DemoTable {
  private DemoTable() {}

  static String render(List<QueryDuel.Outcome> outcomes) {
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

  private static void row(TextTable table, QueryDuel.Outcome outcome) {
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

  private static void total(TextTable table, List<QueryDuel.Outcome> outcomes) {
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

  /** Returns the geometric mean of the speedups of Weft. */
  static double meanRatio(List<QueryDuel.Outcome> outcomes) {
    return Spread.geometricMean(outcomes.stream().map(QueryDuel.Outcome::ratio).toList());
  }

  static ExecutorTotals moved(List<QueryDuel.Outcome> outcomes) {
    return outcomes.stream()
        .map(QueryDuel.Outcome::moved)
        .reduce(ExecutorTotals.NONE, ExecutorTotals::plus);
  }
}
