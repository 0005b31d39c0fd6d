package io.weft.examples.bench.collectives;

import io.weft.examples.measure.Report;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** Formats a report as a table. */
final class CollectivesTable {
  private final CollectivesReport report;

  CollectivesTable(CollectivesReport report) {
    this.report = report;
  }

  Report.Text text() {
    return new Report.Text(heading(), List.of(table()), notes());
  }

  private String heading() {
    List<CollectivesReport.Gang> gangs = report.gangs();
    return String.format(
        Locale.ROOT,
        "Weft %s, Java %s, %s, %s, %d cores, %s, %d alternating runs, %s; one thread copies memory"
            + " at %s/s alone, %s",
        report.weftVersion(),
        report.javaVersion(),
        report.mpiVersion().isEmpty() ? "no OpenMPI" : "OpenMPI " + report.mpiVersion(),
        report.system(),
        report.cores(),
        gangs.stream().map(CollectivesTable::ranks).collect(Collectors.joining(", ")),
        report.runs(),
        report.when(),
        Units.bytes((long) report.copyAlone()),
        gangs.stream().map(CollectivesTable::copySpeed).collect(Collectors.joining(", ")));
  }

  private static String ranks(CollectivesReport.Gang gang) {
    return gang.nranks() + " ranks" + (gang.bound() ? " on a processor each" : " that move freely");
  }

  private static String copySpeed(CollectivesReport.Gang gang) {
    String speed = Units.bytes((long) gang.copyTogether());
    return speed + "/s beside " + (gang.nranks() - 1) + " more";
  }

  private TextTable table() {
    TextTable table =
        new TextTable()
            .column("ranks", Align.RIGHT)
            .column("operation", Align.LEFT)
            .column("size", Align.RIGHT)
            .column("count", Align.RIGHT)
            .column("type", Align.LEFT)
            .column("op", Align.LEFT)
            .column("side", Align.LEFT);
    for (String title :
        List.of("time µs", "min – max", "algbw GB/s", "busbw GB/s", "CPU µs", "× copy")) {
      table.column(title, Align.RIGHT);
    }
    table.column("errors", Align.RIGHT).column("faster", Align.RIGHT).column("by", Align.LEFT);
    for (int i = 0; i < report.results().size(); i++) {
      if (i > 0 && isNewGroup(i)) {
        table.separator();
      }
      add(table, report.results().get(i));
    }
    return table;
  }

  private boolean isNewGroup(int index) {
    CollectiveCase test = report.results().get(index).test();
    CollectiveCase before = report.results().get(index - 1).test();
    return test.operation() != before.operation() || test.nranks() != before.nranks();
  }

  private void add(TextTable table, CollectivesReport.CaseResult result) {
    CollectiveCase test = result.test();
    for (int i = 0; i < result.sides().size(); i++) {
      CollectivesReport.CaseFigures side = result.sides().get(i);
      boolean first = i == 0;
      double seconds = side.seconds().median();
      table.row(
          first ? Integer.toString(test.nranks()) : "",
          first ? test.operation().toString() : "",
          first ? Sizes.text(test.bytes()) : "",
          first ? Long.toString(test.count()) : "",
          first ? test.type().toString() : "",
          first ? reduction(test) : "",
          side.side(),
          micros(seconds),
          micros(side.seconds().min()) + " – " + micros(side.seconds().max()),
          gigabytes(test.algorithmBandwidth(seconds)),
          gigabytes(test.busBandwidth(seconds)),
          micros(side.cpuSeconds().median()),
          ratio(test.algorithmBandwidth(seconds) / report.copyAlone()),
          Long.toString(side.errors()),
          result.timesFaster(side).map(Units::factor).orElse(""),
          side.algorithm());
    }
  }

  private static String reduction(CollectiveCase test) {
    return switch (test.operation()) {
      case ALL_REDUCE, REDUCE, REDUCE_SCATTER -> test.reduction().toString();
      default -> "";
    };
  }

  private static String micros(double seconds) {
    double micros = seconds * 1e6;
    int digits = micros < 10 ? 2 : micros < 1000 ? 1 : 0;
    return String.format(Locale.ROOT, "%." + digits + "f", micros);
  }

  private static String gigabytes(double bytesPerSecond) {
    return String.format(Locale.ROOT, "%.2f", bytesPerSecond / 1e9);
  }

  private static String ratio(double ratio) {
    return String.format(Locale.ROOT, "%.2f", ratio);
  }

  private List<String> notes() {
    List<String> notes = new ArrayList<>();
    notes.add(
        "Sizes, algbw and busbw as in nccl-tests; busbw of a ragged all-to-all without the part"
            + " that a rank keeps. Time is that of the slowest rank, the median of short blocks, of"
            + " which a run has up to 8. CPU is of all ranks and threads together. Both are per"
            + " operation, after every side has repeated the operation until it got no faster.");
    notes.add(
        "× copy: algbw as a part of the speed at which one thread copies alone; faster: than"
            + " OpenMPI.");
    long errors = report.errors();
    notes.add(errors == 0 ? "All results were right." : errors + " ELEMENTS WERE WRONG.");
    return notes;
  }
}
