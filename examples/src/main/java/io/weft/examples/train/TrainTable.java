package io.weft.examples.train;

import io.weft.examples.measure.Spread;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.ToDoubleFunction;

/** Formats trainings as a table with a summary. */
final class TrainTable {
  private static final String LEGEND =
      "\"hand-off\" is everything but the steps: SQL, exchange or files, opening the models."
          + " \"copied\" is the bytes that the ranks copied to form batches after the hand-off.";

  private TrainTable() {}

  static String of(List<TrainOnce.Outcome> outcomes) {
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
    for (TrainOnce.Outcome outcome : outcomes) {
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

  /** Returns the comparison of both hand-offs, if both ran, and the legend of the columns. */
  static String summary(List<TrainOnce.Outcome> outcomes) {
    return comparison(outcomes).map(text -> text + "\n").orElse("") + LEGEND;
  }

  private static Optional<String> comparison(List<TrainOnce.Outcome> outcomes) {
    if (outcomes.stream().map(TrainOnce.Outcome::handOff).distinct().count() < 2) {
      return Optional.empty();
    }
    return Optional.of(
        "By the feed the hand-off is "
            + Units.factor(ratio(outcomes, TrainOnce.Outcome::handOffSeconds))
            + " as fast as by Spark's shuffle and Parquet, and the whole "
            + Units.factor(ratio(outcomes, TrainOnce.Outcome::seconds))
            + ", by the medians.");
  }

  private static double ratio(
      List<TrainOnce.Outcome> outcomes, ToDoubleFunction<TrainOnce.Outcome> seconds) {
    return median(outcomes, TrainOnce.HandOff.PARQUET, seconds)
        / median(outcomes, TrainOnce.HandOff.FEED, seconds);
  }

  private static double median(
      List<TrainOnce.Outcome> outcomes,
      TrainOnce.HandOff handOff,
      ToDoubleFunction<TrainOnce.Outcome> seconds) {
    return new Spread(
            outcomes.stream()
                .filter(outcome -> outcome.handOff() == handOff)
                .mapToDouble(seconds)
                .boxed()
                .toList())
        .median();
  }
}
