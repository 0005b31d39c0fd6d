package io.weft.examples.train;

import io.weft.examples.measure.Svg;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NavigableMap;

/** Draws the loss over the steps: a line for each training, smoothed over several steps. */
final class LossChart {
  private static final int WIDTH = 920;
  private static final int HEIGHT = 420;
  private static final int LEFT = 70;
  private static final int RIGHT = 30;
  private static final int TOP = 86;
  private static final int BOTTOM = 50;
  private static final int MARKS = 5;
  private static final int MAX_POINTS = 400;
  private static final String INK = "#1f2933";
  private static final String QUIET = "#66727f";
  private static final String GRID = "#e4e8ec";
  private static final List<String> COLORS = List.of("#0f766e", "#a9b4be", "#e0a030");

  private final Map<String, NavigableMap<Long, Double>> curves;
  private final String subtitle;
  private final double lastStep;
  private final double highest;

  /**
   * Creates a chart.
   *
   * @param curves by name, in the order of their colours; none is empty
   */
  LossChart(Map<String, NavigableMap<Long, Double>> curves, String subtitle) {
    this.curves = curves;
    this.subtitle = subtitle;
    this.lastStep =
        Math.max(1, curves.values().stream().mapToLong(NavigableMap::lastKey).max().orElse(1));
    this.highest =
        curves.values().stream()
            .flatMap(curve -> curve.values().stream())
            .mapToDouble(Double::doubleValue)
            .max()
            .orElse(1);
  }

  String toSvg() {
    Svg svg = new Svg(WIDTH);
    svg.text(24, 36, "Loss of two ranks, averaged", 20, INK, Svg.Anchor.START, true);
    svg.text(24, 58, subtitle, 12, QUIET, Svg.Anchor.START, false);
    for (int mark = 0; mark <= MARKS; mark++) {
      double loss = highest * mark / MARKS;
      double step = lastStep * mark / MARKS;
      svg.line(LEFT, y(loss), WIDTH - RIGHT, y(loss), GRID, 1);
      svg.text(LEFT - 8, y(loss) + 4, format("%.2f", loss), 11, QUIET, Svg.Anchor.END, false);
      svg.text(
          x(step), HEIGHT - BOTTOM + 18, format("%.0f", step), 11, QUIET, Svg.Anchor.MIDDLE, false);
    }
    svg.text(
        (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 12, "step", 12, QUIET, Svg.Anchor.MIDDLE, false);
    int index = 0;
    for (Map.Entry<String, NavigableMap<Long, Double>> curve : curves.entrySet()) {
      String color = COLORS.get(index % COLORS.size());
      draw(svg, curve.getValue(), color);
      double legend = LEFT + 200.0 * index;
      svg.rectangle(legend, TOP - 18, 12, 4, 2, color);
      svg.text(legend + 18, TOP - 12, curve.getKey(), 13, INK, Svg.Anchor.START, false);
      index++;
    }
    return svg.toDocument(HEIGHT, "Loss of a training");
  }

  private static String format(String format, double value) {
    return String.format(Locale.ROOT, format, value);
  }

  /** Draws a curve. A point is the mean of all steps since the point before it. */
  private void draw(Svg svg, NavigableMap<Long, Double> curve, String color) {
    int each = (curve.size() + MAX_POINTS - 1) / MAX_POINTS;
    List<double[]> points = new ArrayList<>();
    double sum = 0;
    int count = 0;
    for (Map.Entry<Long, Double> step : curve.entrySet()) {
      sum += step.getValue();
      count++;
      if (count == each || step.getKey().equals(curve.lastKey())) {
        points.add(new double[] {x(step.getKey().doubleValue()), y(sum / count)});
        sum = 0;
        count = 0;
      }
    }
    for (int i = 1; i < points.size(); i++) {
      double[] from = points.get(i - 1);
      double[] to = points.get(i);
      svg.line(from[0], from[1], to[0], to[1], color, 1.6);
    }
  }

  private double x(double step) {
    return LEFT + (WIDTH - LEFT - RIGHT) * step / lastStep;
  }

  private double y(double loss) {
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * loss / highest;
  }
}
