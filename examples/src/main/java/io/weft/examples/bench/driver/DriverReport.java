package io.weft.examples.bench.driver;

import io.weft.examples.measure.Environment;
import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.List;
import java.util.Locale;

/**
 * The report of {@code weft bench driver}.
 *
 * @param environment of the run
 * @param rows one for each number of executors
 */
public record DriverReport(Environment environment, List<Row> rows) implements Report {
  /** The goal: 1,000 executors look each other up in this time. */
  private static final double GOAL_SECONDS = 10;

  private static final int GOAL_EXECUTORS = 1000;

  public DriverReport {
    rows = List.copyOf(rows);
  }

  /**
   * The figures of one number of executors. Every executor looked up all others.
   *
   * @param executors that ask at the same time
   * @param announcing seconds until all executors were announced
   * @param seconds until all look-ups ended, by run
   * @param driverSeconds of CPU in the driver's process, by run
   * @param requestBytes of one look-up
   * @param answerBytes of one look-up
   * @param heapLeft bytes of the driver's heap that were left before executors came
   * @param stateBytes of the heap that the executors take in the end
   * @param threads of the driver in the end
   */
  public record Row(
      int executors,
      double announcing,
      Spread seconds,
      Spread driverSeconds,
      long requestBytes,
      long answerBytes,
      long heapLeft,
      long stateBytes,
      int threads) {}

  @Override
  public String fileName() {
    return "driver";
  }

  /** Whether the goal was met, or not measured. A wrong answer ends the benchmark earlier. */
  @Override
  public boolean passed() {
    return rows.stream()
        .filter(row -> row.executors() == GOAL_EXECUTORS)
        .allMatch(row -> row.seconds().median() <= GOAL_SECONDS);
  }

  @Override
  public Text text() {
    TextTable table =
        new TextTable()
            .columns(
                Align.RIGHT,
                "executors",
                "look-ups",
                "s",
                "min – max",
                "driver CPU s",
                "ms each",
                "request",
                "answer",
                "announcing s",
                "heap left",
                "state",
                "driver threads");
    rows.forEach(row -> add(table, row));
    return new Text(
        "",
        List.of(table),
        List.of(
            "Cores: %d. The goal, %,d executors in %.0f s, was %s."
                .formatted(
                    environment.cores(),
                    GOAL_EXECUTORS,
                    GOAL_SECONDS,
                    rows.stream().noneMatch(row -> row.executors() == GOAL_EXECUTORS)
                        ? "not measured"
                        : passed() ? "met" : "NOT MET")));
  }

  private static void add(TextTable table, Row row) {
    table.row(
        String.format(Locale.ROOT, "%,d", row.executors()),
        String.format(Locale.ROOT, "%,d", (long) row.executors() * (row.executors() - 1)),
        Units.seconds(row.seconds().median()),
        Units.seconds(row.seconds().min()) + " – " + Units.seconds(row.seconds().max()),
        Units.seconds(row.driverSeconds().median()),
        Units.seconds(1000 * row.driverSeconds().median() / row.executors()),
        Units.bytes(row.requestBytes()),
        Units.bytes(row.answerBytes()),
        Units.seconds(row.announcing()),
        Units.bytes(row.heapLeft()),
        Units.bytes(row.stateBytes()),
        Integer.toString(row.threads()));
  }
}
