package io.weft.examples.bench.feed;

import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/**
 * The report of {@code weft bench feed}.
 *
 * @param scanSeconds of reading the input alone, by run
 * @param results of each side, by run
 */
public record FeedReport(List<Double> scanSeconds, Map<FeedSide, List<FeedRead.Result>> results)
    implements Report {
  /** The goal: the feed is this many times as fast as Parquet with default compression. */
  private static final double GOAL = 3;

  @Override
  public String fileName() {
    return "feed";
  }

  @Override
  public Text text() {
    return new Text("", List.of(table()), List.of(summary()));
  }

  /** Whether all runs of all hand-offs delivered the same elements. */
  @Override
  public boolean passed() {
    Set<String> seen =
        results.values().stream()
            .flatMap(List::stream)
            .map(result -> result.rows() + "/" + result.sum())
            .collect(Collectors.toSet());
    return seen.size() == 1;
  }

  /** How many times less time the feed takes than another side, by the medians. */
  double speedup(FeedSide other) {
    return seconds(other).median() / seconds(FeedSide.FEED).median();
  }

  /** The same, without the time of the scan. */
  double speedupBeyondScan(FeedSide other) {
    double scan = new Spread(scanSeconds).median();
    return (seconds(other).median() - scan) / (seconds(FeedSide.FEED).median() - scan);
  }

  private Spread seconds(FeedSide side) {
    return new Spread(results.get(side).stream().map(FeedRead.Result::seconds).toList());
  }

  private Spread cpuSeconds(FeedSide side) {
    return new Spread(results.get(side).stream().map(FeedRead.Result::cpuSeconds).toList());
  }

  private TextTable table() {
    TextTable table =
        new TextTable()
            .column("hand-off by", Align.LEFT)
            .columns(
                Align.RIGHT,
                "s",
                "min – max",
                "process CPU s",
                "tensors",
                "files",
                "copied after the exchange");
    for (FeedSide side : FeedSide.values()) {
      Spread spread = seconds(side);
      FeedRead.Result one = results.get(side).get(0);
      table.row(
          side.label(),
          Units.seconds(spread.median()),
          Units.seconds(spread.min()) + " – " + Units.seconds(spread.max()),
          Units.seconds(cpuSeconds(side).median()),
          Long.toString(one.rows()),
          Units.bytes(one.fileBytes()),
          Units.bytes(one.copiedBytes()));
    }
    return table;
  }

  private String summary() {
    List<FeedSide> others = List.of(FeedSide.PARQUET, FeedSide.PLAIN_PARQUET);
    return "The feed is "
        + factors(others, this::speedup)
        + " as fast as by Parquet and by Parquet uncompressed; beyond the scan of the input, which"
        + " takes "
        + Units.seconds(new Spread(scanSeconds).median())
        + " s and is in all, "
        + factors(others, this::speedupBeyondScan)
        + ". The goal, "
        + Units.factor(GOAL)
        + " as fast as by Parquet, was "
        + (speedup(FeedSide.PARQUET) >= GOAL ? "met" : "NOT MET")
        + ". All elements were "
        + (passed() ? "equal." : "NOT EQUAL.");
  }

  private static String factors(List<FeedSide> others, ToDoubleFunction<FeedSide> speedup) {
    return others.stream()
        .map(other -> Units.factor(speedup.applyAsDouble(other)))
        .collect(Collectors.joining(" and "));
  }
}
