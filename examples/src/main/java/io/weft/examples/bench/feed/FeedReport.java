package io.weft.examples.bench.feed;

import io.weft.examples.measure.Spread;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import io.weft.examples.train.HandOff;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * What was measured.
 *
 * @param scanSeconds of reading the input alone
 * @param results of each hand-off, a run each
 */
record FeedReport(List<Double> scanSeconds, Map<HandOff, List<FeedResult>> results) {
  /** Whether all runs of all hand-offs brought the same elements. */
  boolean equal() {
    Set<String> seen =
        results.values().stream()
            .flatMap(List::stream)
            .map(result -> result.rows() + "/" + result.sum())
            .collect(Collectors.toSet());
    return seen.size() == 1;
  }

  /** How often the feed's median time goes into the files'. */
  double speedup() {
    return seconds(HandOff.PARQUET).median() / seconds(HandOff.FEED).median();
  }

  /** The same, of the time beyond that of the scan. */
  double speedupBeyondScan() {
    double scan = new Spread(scanSeconds).median();
    return (seconds(HandOff.PARQUET).median() - scan) / (seconds(HandOff.FEED).median() - scan);
  }

  private Spread seconds(HandOff handOff) {
    return new Spread(results.get(handOff).stream().map(FeedResult::seconds).toList());
  }

  private TextTable table() {
    TextTable table =
        new TextTable()
            .column("hand-off by", Align.LEFT)
            .columns(
                Align.RIGHT, "s", "min – max", "tensors", "files", "copied after the exchange");
    for (HandOff handOff : HandOff.values()) {
      Spread spread = seconds(handOff);
      FeedResult one = results.get(handOff).get(0);
      table.row(
          handOff.label(),
          Units.seconds(spread.median()),
          Units.seconds(spread.min()) + " – " + Units.seconds(spread.max()),
          Long.toString(one.rows()),
          Units.bytes(one.fileBytes()),
          Units.bytes(one.copiedBytes()));
    }
    return table;
  }

  String toText() {
    return table().toText() + "\n" + summary() + "\n";
  }

  String toMarkdown() {
    return table().toMarkdown() + "\n" + summary() + "\n";
  }

  private String summary() {
    return "The feed is "
        + Units.factor(speedup())
        + " as fast; beyond the scan of the input, which takes "
        + Units.seconds(new Spread(scanSeconds).median())
        + " s and is in both, "
        + Units.factor(speedupBeyondScan())
        + ". All elements were "
        + (equal() ? "equal." : "NOT EQUAL.");
  }
}
