package io.weft.examples.train;

import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.List;
import java.util.Locale;

/** Trainings as a table. */
final class TrainTable {
  static final String LEGEND =
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
          Long.toString(rank.steps()),
          Units.seconds(rank.waitSeconds()),
          String.format(Locale.ROOT, "%.4f", outcome.lastLoss()),
          String.format(Locale.ROOT, "%.1f %%", 100 * outcome.accuracy()));
    }
    return table.toText();
  }
}
