package io.weft.examples.bench.shuffle;

import io.weft.examples.measure.Svg;
import io.weft.examples.terminal.Units;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * Draws a report: a group of bars for each workload. A bar is as long as the median time; a thin
 * line goes from the fastest to the slowest run. Shuffles and whole queries have different scales.
 */
final class ShuffleChart {
  private static final int WIDTH = 920;
  private static final int LEFT = 250;
  private static final int RIGHT = 150;
  private static final int BAR = 16;
  private static final int BAR_GAP = 3;
  private static final int GROUP_GAP = 18;
  private static final int TICKS = 5;
  private static final String INK = "#1f2933";
  private static final String QUIET = "#66727f";
  private static final String GRID = "#e4e8ec";
  private static final List<String> COLORS =
      List.of("#a9b4be", "#0f766e", "#e0a030", "#5b6ee1", "#b4436c");

  private final ShuffleReport report;
  private final Svg svg = new Svg(WIDTH);
  private double y;

  ShuffleChart(ShuffleReport report) {
    this.report = report;
  }

  String toSvg() {
    y = 36;
    svg.text(24, y, "What a shuffle costs", 20, INK, Svg.Anchor.START, true);
    y += 22;
    svg.text(24, y, subtitle(), 12, QUIET, Svg.Anchor.START, false);
    y += 26;
    legend();
    panel("seconds of the shuffle alone", shuffles());
    panel("seconds of whole queries", queries());
    return svg.toDocument((int) Math.ceil(y + 12), "What a shuffle costs");
  }

  private String subtitle() {
    return String.format(
        Locale.ROOT,
        "median of up to %d alternating runs, line from fastest to slowest · Spark %s, %s, %d cores"
            + " · shorter is better",
        report.runs(),
        report.sparkVersion(),
        report.cluster(),
        report.cores());
  }

  private Stream<ShuffleReport.WorkloadResult> measured() {
    return report.results().stream().filter(ShuffleReport.WorkloadResult::measured);
  }

  private List<ShuffleReport.WorkloadResult> shuffles() {
    return measured().filter(result -> !result.query()).toList();
  }

  private List<ShuffleReport.WorkloadResult> queries() {
    return measured().filter(ShuffleReport.WorkloadResult::query).toList();
  }

  private void legend() {
    double x = 24;
    List<ShuffleReport.SideResult> sides =
        measured().map(ShuffleReport.WorkloadResult::sides).findFirst().orElse(List.of());
    for (int i = 0; i < sides.size(); i++) {
      svg.rectangle(x, y - 10, 12, 12, 3, color(i));
      String label = i == 0 ? "Spark's sort shuffle" : sides.get(i).label();
      svg.text(x + 18, y, label, 13, INK, Svg.Anchor.START, false);
      x += 18 + label.length() * 7.2 + 26;
    }
    y += 14;
  }

  private void panel(String title, List<ShuffleReport.WorkloadResult> results) {
    if (results.isEmpty()) {
      return;
    }
    double step = tick(longest(results));
    double end = step * Math.ceil(longest(results) / step);
    double scale = (WIDTH - LEFT - RIGHT) / end;
    y += 26;
    svg.text(LEFT, y, title, 12, QUIET, Svg.Anchor.START, false);
    y += 12;
    double top = y;
    double height = results.stream().mapToDouble(ShuffleChart::height).sum();
    for (double mark = 0; mark <= end + step / 2; mark += step) {
      double x = LEFT + mark * scale;
      svg.line(x, top, x, top + height, GRID, 1);
      svg.text(x, top + height + 16, number(mark, step), 11, QUIET, Svg.Anchor.MIDDLE, false);
    }
    results.forEach(result -> group(result, scale));
    y = top + height + 20;
  }

  private static double height(ShuffleReport.WorkloadResult result) {
    return result.sides().size() * (BAR + BAR_GAP) - BAR_GAP + GROUP_GAP;
  }

  private static double longest(List<ShuffleReport.WorkloadResult> results) {
    return results.stream()
        .flatMap(result -> result.sides().stream())
        .flatMap(side -> Stream.of(side.shuffleSeconds().max(), 0.001))
        .mapToDouble(Double::doubleValue)
        .max()
        .orElse(1);
  }

  /** A round step between marks: a power of ten times 1, 2 or 5. */
  static double tick(double longest) {
    double rough = longest / TICKS;
    double power = Math.pow(10, Math.floor(Math.log10(rough)));
    double first = rough / power;
    return power * (first > 5 ? 10 : first > 2 ? 5 : first > 1 ? 2 : 1);
  }

  private static String number(double value, double step) {
    int digits = (int) Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return String.format(Locale.ROOT, "%." + digits + "f", value);
  }

  private void group(ShuffleReport.WorkloadResult result, double scale) {
    double top = y + GROUP_GAP / 2.0;
    double middle = top + (height(result) - GROUP_GAP) / 2;
    boolean query = result.query();
    svg.text(
        LEFT - 14, query ? middle + 4 : middle - 2, result.title(), 13, INK, Svg.Anchor.END, false);
    if (!query) {
      svg.text(
          LEFT - 14,
          middle + 14,
          Units.bytes(result.dataBytes()),
          11,
          QUIET,
          Svg.Anchor.END,
          false);
    }
    for (int i = 0; i < result.sides().size(); i++) {
      bar(result, i, top + i * (BAR + BAR_GAP), scale);
    }
    y += height(result);
  }

  private void bar(ShuffleReport.WorkloadResult result, int index, double top, double scale) {
    ShuffleReport.SideResult side = result.sides().get(index);
    double median = Math.max(0, side.shuffleSeconds().median());
    double fastest = LEFT + Math.max(0, side.shuffleSeconds().min()) * scale;
    double slowest = LEFT + Math.max(0, side.shuffleSeconds().max()) * scale;
    double middle = top + BAR / 2.0;
    svg.rectangle(LEFT, top, Math.max(1, median * scale), BAR, 2.5, color(index));
    svg.line(fastest, middle, slowest, middle, INK, 1);
    svg.line(fastest, middle - 3, fastest, middle + 3, INK, 1);
    svg.line(slowest, middle - 3, slowest, middle + 3, INK, 1);
    double x = Math.max(LEFT + median * scale, slowest) + 8;
    String seconds = Units.seconds(side.shuffleSeconds().median()) + " s";
    String faster = index == 0 ? "" : " · " + Units.factor(result.speedup(side));
    svg.text(x, middle + 4, seconds + faster, 12, INK, Svg.Anchor.START, index > 0);
  }

  private static String color(int side) {
    return COLORS.get(side % COLORS.size());
  }
}
