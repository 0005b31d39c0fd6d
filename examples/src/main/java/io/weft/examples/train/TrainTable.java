package io.weft.examples.train;

import io.weft.examples.measure.Spread;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.ToDoubleFunction;

/** Trainings as a table, and what it says. */
final class TrainTable {
  private static final String LEGEND =
      "\"hand-off\" is everything but the steps: SQL, exchange or files, opening the models."
          + " \"copied\" is what the ranks copied to make batches of what they were handed.";

  private TrainTable() {}

  static String of(List<TrainOutcome> outcomes) {
    TextTable table =
        new TextTable()
            .column("hand-off by", Align.LEFT)
            .columns(
                Align.RIGHT,
                "s",
                "hand-off s",
                "steps s",
                "files",
                "copied",
                "steps",
                "waited s",
                "loss",
                "accuracy");
    for (TrainOutcome outcome : outcomes) {
      RankReport rank = outcome.ranks().get(0);
      table.row(
          outcome.handOff().label(),
          Units.seconds(outcome.seconds()),
          Units.seconds(outcome.handOffSeconds()),
          Units.seconds(outcome.stepSeconds()),
          Units.bytes(outcome.fileBytes()),
          Units.bytes(outcome.copiedBytes()),
          Long.toString(rank.trainedSteps()),
          Units.seconds(rank.waitSeconds()),
          String.format(Locale.ROOT, "%.4f", outcome.lastLoss()),
          String.format(Locale.ROOT, "%.1f %%", 100 * outcome.accuracy()));
    }
    return table.toText();
  }

  /** What the columns mean, behind how the two hand-offs compare where there were both. */
  static String summary(List<TrainOutcome> outcomes) {
    return comparison(outcomes).map(text -> text + "\n").orElse("") + LEGEND;
  }

  private static Optional<String> comparison(List<TrainOutcome> outcomes) {
    if (outcomes.stream().map(TrainOutcome::handOff).distinct().count() < 2) {
      return Optional.empty();
    }
    return Optional.of(
        "By the feed the hand-off is "
            + Units.factor(ratio(outcomes, TrainOutcome::handOffSeconds))
            + " as fast as by Spark's shuffle and Parquet, and the whole "
            + Units.factor(ratio(outcomes, TrainOutcome::seconds))
            + ", by the medians.");
  }

  private static double ratio(List<TrainOutcome> outcomes, ToDoubleFunction<TrainOutcome> seconds) {
    return median(outcomes, HandOff.PARQUET, seconds) / median(outcomes, HandOff.FEED, seconds);
  }

  private static double median(
      List<TrainOutcome> outcomes, HandOff handOff, ToDoubleFunction<TrainOutcome> seconds) {
    return new Spread(
            outcomes.stream()
                .filter(outcome -> outcome.handOff() == handOff)
                .mapToDouble(seconds)
                .boxed()
                .toList())
        .median();
  }
}
