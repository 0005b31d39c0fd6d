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
            .column("s", Align.RIGHT)
            .column("hand-off s", Align.RIGHT)
            .column("steps s", Align.RIGHT)
            .column("files", Align.RIGHT)
            .column("copied", Align.RIGHT)
            .column("steps", Align.RIGHT)
            .column("waited s", Align.RIGHT)
            .column("loss", Align.RIGHT)
            .column("accuracy", Align.RIGHT);
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
