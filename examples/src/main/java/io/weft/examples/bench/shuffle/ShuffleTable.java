package io.weft.examples.bench.shuffle;

import io.weft.examples.measure.Report;
import io.weft.examples.measure.Spread;
import io.weft.examples.terminal.TextTable;
import io.weft.examples.terminal.TextTable.Align;
import io.weft.examples.terminal.Units;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/** Formats a report as a table. */
final class ShuffleTable {
  private final ShuffleReport report;

  ShuffleTable(ShuffleReport report) {
    this.report = report;
  }

  Report.Text text() {
    return new Report.Text(heading(), List.of(table()), notes());
  }

  private String heading() {
    return String.format(
        Locale.ROOT,
        "Weft %s, Spark %s, Java %s, %s, %d cores, %s, up to %d alternating runs after %d"
            + " to warm up, %s; two threads copy memory at %s/s",
        report.weftVersion(),
        report.sparkVersion(),
        report.javaVersion(),
        report.system(),
        report.cores(),
        report.cluster(),
        report.runs(),
        report.warmUps(),
        report.when(),
        Units.bytes((long) report.copyBytesPerSecond()));
  }

  private TextTable table() {
    TextTable table = new TextTable().column("workload", Align.LEFT).column("side", Align.LEFT);
    for (String title :
        List.of(
            "s",
            "min – max",
            "faster",
            "CPU s",
            "less CPU",
            "process CPU s",
            "less process CPU",
            "× copy",
            "stored",
            "in place",
            "network",
            "fresh")) {
      table.column(title, Align.RIGHT);
    }
    List<ShuffleReport.WorkloadResult> measured =
        report.results().stream().filter(ShuffleReport.WorkloadResult::measured).toList();
    for (int i = 0; i < measured.size(); i++) {
      if (i > 0) {
        table.separator();
      }
      add(table, measured.get(i));
    }
    return table;
  }

  private static void add(TextTable table, ShuffleReport.WorkloadResult result) {
    for (int i = 0; i < result.sides().size(); i++) {
      ShuffleReport.SideResult side = result.sides().get(i);
      boolean first = i == 0;
      table.row(
          name(result, i),
          side.label(),
          Units.seconds(side.shuffleSeconds().median()),
          range(side.shuffleSeconds()),
          first ? "" : Units.factor(result.speedup(side)),
          Units.seconds(side.shuffleCpuSeconds().median()),
          first ? "" : Units.factor(result.cpuSpeedup(side)),
          Units.seconds(side.shuffleProcessCpuSeconds().median()),
          first ? "" : Units.factor(result.processCpuSpeedup(side)),
          result.timesCopy(side).map(Units::factor).orElse(""),
          Units.bytes(side.storedBytes()),
          first ? "" : Units.bytes(side.ownBytes() + side.sameHostBytes()),
          first ? "" : Units.bytes(side.networkBytes()),
          first ? "" : Units.bytes(side.laterFreshBytes()));
    }
  }

  /** The first cell of a row: the title beside the first side, the size beside the second. */
  private static String name(ShuffleReport.WorkloadResult result, int side) {
    if (side == 0) {
      return result.title() + (result.equal() ? "" : " NOT EQUAL");
    }
    return side == 1 && !result.query() ? Units.bytes(result.dataBytes()) : "";
  }

  private static String range(Spread spread) {
    return Units.seconds(spread.min()) + " – " + Units.seconds(spread.max());
  }

  private List<String> notes() {
    List<String> notes = new ArrayList<>();
    if (!report.settings().isEmpty()) {
      notes.add("Settings of all sides: " + new TreeMap<>(report.settings()));
    }
    notes.add(
        "Seconds are medians: of a shuffle, the job less the same job without it; of a query, the"
            + " whole. CPU is of the task threads; process CPU is of all threads of the executors,"
            + " with the compiler and the garbage collector.");
    notes.add(
        "× copy: the time as a multiple of copying the data once; fresh: shared memory first"
            + " touched in the runs that count.");
    queries().forEach((set, results) -> notes.addAll(means(set, results)));
    report.results().stream()
        .filter(result -> !result.equal())
        .forEach(result -> notes.add(result.title() + ": " + result.problem()));
    if (report.left() > 0) {
      notes.add("Interrupted: " + report.left() + " more were to follow.");
    }
    notes.add(report.passed() ? "All sides came to the same results." : "RESULTS ARE NOT EQUAL.");
    return notes;
  }

  /** The queries that were measured with equal results, by the name of their set. */
  private Map<String, List<ShuffleReport.WorkloadResult>> queries() {
    return report.results().stream()
        .filter(
            result ->
                ShuffleBench.Options.QUERY_SETS.stream().anyMatch(result.id()::startsWith)
                    && result.measured()
                    && result.equal())
        .collect(
            Collectors.groupingBy(
                result -> result.title().substring(0, result.title().lastIndexOf(' ')),
                LinkedHashMap::new,
                Collectors.toList()));
  }

  private static List<String> means(String set, List<ShuffleReport.WorkloadResult> queries) {
    List<String> means = new ArrayList<>();
    int sides = queries.get(0).sides().size();
    for (int i = 1; i < sides; i++) {
      int side = i;
      means.add(
          String.format(
              "%s under %s, geometric means of %d queries (the least): %s faster, %s less CPU, %s"
                  + " less process CPU.",
              set,
              queries.get(0).sides().get(i).label(),
              queries.size(),
              mean(queries, query -> query.speedup(query.sides().get(side))),
              mean(queries, query -> query.cpuSpeedup(query.sides().get(side))),
              mean(queries, query -> query.processCpuSpeedup(query.sides().get(side)))));
    }
    return means;
  }

  private static String mean(
      List<ShuffleReport.WorkloadResult> queries,
      ToDoubleFunction<ShuffleReport.WorkloadResult> ratio) {
    List<Double> ratios = queries.stream().mapToDouble(ratio).boxed().toList();
    return Units.factor(Spread.geometricMean(ratios))
        + " ("
        + Units.factor(new Spread(ratios).min())
        + ")";
  }
}
