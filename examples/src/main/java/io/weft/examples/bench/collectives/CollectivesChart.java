package io.weft.examples.bench.collectives;

import io.weft.examples.measure.Svg;
import io.weft.examples.terminal.Units;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * Draws a report: a panel for each number of ranks and operation, with a line for each side. It
 * shows the bus bandwidth over the size; both axes are logarithmic.
 */
final class CollectivesChart {
  private static final int WIDTH = 920;
  private static final int LEFT = 90;
  private static final int RIGHT = 40;
  private static final int HEIGHT = 230;
  private static final String INK = "#1f2933";
  private static final String QUIET = "#66727f";
  private static final String GRID = "#e4e8ec";
  private static final String MPI_COLOR = "#a9b4be";
  private static final List<String> COLORS = List.of("#0f766e", "#e0a030", "#5b6ee1", "#b4436c");

  private final CollectivesReport report;
  private final List<String> names;
  private final Svg svg = new Svg(WIDTH);
  private double y = 36;

  CollectivesChart(CollectivesReport report) {
    this.report = report;
    this.names =
        report.results().stream()
            .flatMap(result -> result.sides().stream())
            .map(CollectivesReport.CaseFigures::side)
            .distinct()
            .toList();
  }

  String toSvg() {
    svg.text(
        24, y, "Collectives between processes of one machine", 20, INK, Svg.Anchor.START, true);
    y += 22;
    svg.text(24, y, subtitle(), 12, QUIET, Svg.Anchor.START, false);
    y += 26;
    legend();
    report.results().stream()
        .collect(
            Collectors.groupingBy(
                result -> panelTitle(result.test()), LinkedHashMap::new, Collectors.toList()))
        .forEach(this::panel);
    return svg.toDocument((int) Math.ceil(y + 12), "Collectives");
  }

  private static String panelTitle(CollectiveCase test) {
    return test.operation() + ", " + test.nranks() + " ranks";
  }

  private String subtitle() {
    return String.format(
        Locale.ROOT,
        "bus bandwidth as in nccl-tests, median of %d alternating runs · %d cores ·"
            + " dashes: one thread copies memory at %s/s · higher is better",
        report.runs(),
        report.cores(),
        Units.bytes((long) report.copyAlone()));
  }

  private void legend() {
    double x = 24;
    for (String name : names) {
      svg.rectangle(x, y - 10, 12, 12, 3, color(name));
      svg.text(x + 18, y, name, 13, INK, Svg.Anchor.START, false);
      x += 18 + name.length() * 7.2 + 26;
    }
    y += 14;
  }

  private String color(String name) {
    return name.equals(MpiSide.NAME) ? MPI_COLOR : COLORS.get(names.indexOf(name) % COLORS.size());
  }

  /** Maps sizes and bandwidths to positions in a panel. */
  private final class Axes {
    private final double top;
    private final double firstSize;
    private final double lastSize;
    private final double lowest;
    private final double highest;

    private Axes(List<CollectivesReport.CaseResult> results, double top) {
      this.top = top;
      firstSize = log2(results.get(0).test().bytes());
      lastSize = Math.max(firstSize + 1, log2(results.get(results.size() - 1).test().bytes()));
      double least = report.copyAlone();
      double most = report.copyAlone();
      for (CollectivesReport.CaseResult result : results) {
        for (CollectivesReport.CaseFigures side : result.sides()) {
          double bandwidth = result.test().busBandwidth(side.seconds().median());
          least = Math.min(least, bandwidth);
          most = Math.max(most, bandwidth);
        }
      }
      lowest = Math.floor(Math.log10(least));
      highest = Math.max(lowest + 1, Math.ceil(Math.log10(most)));
    }

    private double x(long bytes) {
      return LEFT + (log2(bytes) - firstSize) / (lastSize - firstSize) * (WIDTH - LEFT - RIGHT);
    }

    private double y(double bandwidth) {
      return top + HEIGHT * (highest - Math.log10(bandwidth)) / (highest - lowest);
    }

    private static double log2(long value) {
      return Math.log((double) value) / Math.log(2);
    }
  }

  private void panel(String title, List<CollectivesReport.CaseResult> results) {
    y += 26;
    svg.text(LEFT, y, title, 13, INK, Svg.Anchor.START, true);
    y += 14;
    Axes axes = new Axes(results, y);
    grid(axes, results);
    names.forEach(name -> line(axes, results, name));
    y += HEIGHT + 28;
  }

  private void grid(Axes axes, List<CollectivesReport.CaseResult> results) {
    for (double power = axes.lowest; power <= axes.highest; power++) {
      double bandwidth = Math.pow(10, power);
      double at = axes.y(bandwidth);
      svg.line(LEFT, at, WIDTH - RIGHT, at, GRID, 1);
      String label = Units.bytes((long) bandwidth) + "/s";
      svg.text(LEFT - 8, at + 4, label, 11, QUIET, Svg.Anchor.END, false);
    }
    for (CollectivesReport.CaseResult result : results) {
      double at = axes.x(result.test().bytes());
      svg.line(at, axes.top, at, axes.top + HEIGHT, GRID, 1);
      String label = Sizes.text(result.test().bytes());
      svg.text(at, axes.top + HEIGHT + 16, label, 10, QUIET, Svg.Anchor.MIDDLE, false);
    }
    double copy = axes.y(report.copyAlone());
    for (double x = LEFT; x < WIDTH - RIGHT; x += 12) {
      svg.line(x, copy, Math.min(x + 6, WIDTH - RIGHT), copy, QUIET, 1);
    }
  }

  private void line(Axes axes, List<CollectivesReport.CaseResult> results, String name) {
    List<double[]> points = new ArrayList<>();
    for (CollectivesReport.CaseResult result : results) {
      result.sides().stream()
          .filter(side -> side.side().equals(name))
          .mapToDouble(side -> result.test().busBandwidth(side.seconds().median()))
          .forEach(
              bandwidth ->
                  points.add(new double[] {axes.x(result.test().bytes()), axes.y(bandwidth)}));
    }
    for (int i = 0; i < points.size(); i++) {
      double[] point = points.get(i);
      svg.rectangle(point[0] - 3, point[1] - 3, 6, 6, 3, color(name));
      if (i > 0) {
        double[] before = points.get(i - 1);
        svg.line(before[0], before[1], point[0], point[1], color(name), 2);
      }
    }
  }
}
