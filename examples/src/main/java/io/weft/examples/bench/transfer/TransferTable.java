package io.weft.examples.bench.transfer;

import io.weft.examples.measure.Report;
import io.weft.examples.measure.Rounds;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Formats a report as tables. */
final class TransferTable {
  private final TransferReport report;

  TransferTable(TransferReport report) {
    this.report = report;
  }

  Report.Text text() {
    List<TextTable> tables = new ArrayList<>();
    if (!report.rows().isEmpty()) {
      tables.add(rows());
    }
    if (!report.latencies().isEmpty()) {
      tables.add(latencies());
    }
    return new Report.Text(heading(), tables, notes());
  }

  private String heading() {
    return String.format(
        Locale.ROOT,
        "Weft %s, Java %s, %s, %d cores with a load of %.1f before, %d alternating runs, %s",
        report.weftVersion(),
        report.javaVersion(),
        report.system(),
        report.cores(),
        report.load(),
        report.runs(),
        report.when());
  }

  private TextTable rows() {
    TextTable table = new TextTable().column("row", Align.LEFT).column("side", Align.LEFT);
    for (String title : List.of("seconds", "min – max", "CPU s", "per second")) {
      table.column(title, Align.RIGHT);
    }
    table.column("goal", Align.LEFT).column("reached", Align.RIGHT).column("", Align.LEFT);
    for (int i = 0; i < report.rows().size(); i++) {
      if (i > 0) {
        table.separator();
      }
      add(table, report.rows().get(i));
    }
    return table;
  }

  private static void add(TextTable table, TransferReport.RowResult row) {
    for (int i = 0; i < row.sides().size(); i++) {
      Rounds.SideFigures side = row.sides().get(i);
      boolean first = i == 0;
      double seconds = side.seconds().median();
      double cpu = side.cpuSeconds().median();
      table.row(
          first ? row.id() : "",
          side.side(),
          Units.seconds(seconds),
          Units.seconds(side.seconds().min()) + " – " + Units.seconds(side.seconds().max()),
          cpu == 0 ? "" : Units.seconds(cpu),
          row.bytes() == 0 ? "" : Units.bytes(Math.round(row.bytes() / seconds)),
          first ? row.goal().text() : "",
          first ? reached(row.goal()) : "",
          first ? (row.goal().met() ? "met" : "NOT MET") : "");
    }
  }

  private static String reached(TransferReport.Goal goal) {
    return String.format(Locale.ROOT, "%.3g %s", goal.reached(), goal.unit());
  }

  private TextTable latencies() {
    TextTable table =
        new TextTable()
            .column("one block of 1 KiB, µs", Align.LEFT)
            .column("reads", Align.RIGHT)
            .column("mean", Align.RIGHT);
    for (double percentile : TransferReport.LatencyFigures.PERCENTILES) {
      String number = percentile == Math.rint(percentile) ? "%.0f %%" : "%.1f %%";
      table.column(
          percentile == 100 ? "longest" : String.format(Locale.ROOT, number, percentile),
          Align.RIGHT);
    }
    for (TransferReport.LatencyFigures side : report.latencies()) {
      List<String> cells = new ArrayList<>();
      cells.add(side.side());
      cells.add(Long.toString(side.count()));
      cells.add(micros(side.mean()));
      side.percentiles().forEach(value -> cells.add(micros(value)));
      table.row(cells.toArray(String[]::new));
    }
    return table;
  }

  private static String micros(double micros) {
    return String.format(Locale.ROOT, micros < 100 ? "%.1f" : "%.0f", micros);
  }

  private List<String> notes() {
    List<String> notes = new ArrayList<>();
    report.rows().forEach(row -> notes.add(row.id() + ": " + row.title() + "."));
    notes.add(
        "Seconds and CPU are medians. CPU is of all processes and threads of a side, and not"
            + " measured for abort. Percentiles are of an HdrHistogram of all runs.");
    long missed = report.rows().stream().filter(row -> !row.goal().met()).count();
    notes.add(missed == 0 ? "All goals were met." : missed + " GOALS WERE NOT MET.");
    return notes;
  }
}
