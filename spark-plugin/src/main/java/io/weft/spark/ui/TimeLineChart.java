package io.weft.spark.ui;

import static io.weft.spark.ui.Texts.escape;

import io.weft.spark.ui.TimeLine.Kind;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;

/** Draws events over time, one lane for each kind, in SVG. Stateless. */
final class TimeLineChart {
  private static final int WIDTH = 760;
  private static final int LABELS = 120;
  private static final int LANE = 18;

  private static final List<String> LANES = Arrays.stream(Kind.values()).map(Kind::label).toList();

  private TimeLineChart() {}

  /**
   * Draws events.
   *
   * @param events at least one
   */
  static String svg(List<TimeLine.Event> events) {
    long start = events.stream().mapToLong(TimeLine.Event::first).min().getAsLong();
    long end = events.stream().mapToLong(TimeLine.Event::last).max().getAsLong();
    int height = (LANES.size() + 1) * LANE;
    StringBuilder svg = new StringBuilder();
    svg.append(
        "<div style=\"overflow-x:auto\"><svg width=\"%d\" height=\"%d\" font-size=\"11\""
            .formatted(LABELS + WIDTH + 10, height));
    svg.append(" role=\"img\" aria-label=\"Events over time\" fill=\"currentColor\">");
    for (String kind : LANES) {
      int y = lane(kind) * LANE + LANE / 2;
      svg.append("<text x=\"0\" y=\"%d\">%s</text>".formatted(y + 4, escape(kind)));
      svg.append("<path stroke=\"#888\" d=\"M%d %dh%d\"/>".formatted(LABELS, y, WIDTH));
    }
    for (TimeLine.Event event : events) {
      int y = lane(event.kind()) * LANE + LANE / 2;
      long from = x(event.first(), start, end);
      long to = x(event.last(), start, end);
      svg.append("<rect x=\"").append(LABELS + from - 3).append("\" y=\"").append(y - 5);
      svg.append("\" width=\"").append(to - from + 6).append("\" height=\"10\" rx=\"3\">");
      svg.append("<title>").append(escape(event.text())).append("</title></rect>");
    }
    svg.append(
        "<text x=\"%d\" y=\"%d\">%s</text>"
            .formatted(LABELS, height - 4, Instant.ofEpochMilli(start)));
    svg.append(
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>"
            .formatted(LABELS + WIDTH, height - 4, Instant.ofEpochMilli(end)));
    return svg.append("</svg></div>").toString();
  }

  private static long x(long time, long start, long end) {
    return end == start ? 0 : (time - start) * WIDTH / (end - start);
  }

  /** The lane of a kind; the last one for kinds of other versions. */
  private static int lane(String kind) {
    int lane = LANES.indexOf(kind);
    return lane < 0 ? LANES.size() - 1 : lane;
  }
}
