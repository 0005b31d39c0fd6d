package io.weft.spark.ui;

import static io.weft.spark.ui.Texts.bytes;
import static io.weft.spark.ui.Texts.escape;

import java.util.List;

/**
 * Draws the bytes between executors or hosts as a square of cells, in SVG. A row is a reader, a
 * column is the source. Colours are on a logarithmic scale; their lightness grows with the bytes,
 * so that they can be told apart without colour vision. For one picture.
 */
final class HeatMap {
  private static final int CELL = 14;
  private static final int LONGEST_NAME = 20;
  private static final int LEGEND_STEP = 80;
  private static final int LEGEND = 40;

  /** Some steps of the cividis palette, from few bytes to many. */
  private static final List<String> COLOURS =
      List.of(
          "#00224e", "#1d3b6e", "#444e6b", "#666970", "#878479", "#aba074", "#d2bf60", "#fee838");

  private final StringBuilder svg = new StringBuilder();

  /** Space for the names, on the left and above. */
  private final int labels;

  private HeatMap(List<String> names) {
    int longest = names.stream().mapToInt(String::length).max().orElse(0);
    labels = 24 + 6 * Math.min(longest, LONGEST_NAME);
  }

  static String svg(TrafficMatrix.Snapshot traffic) {
    return new HeatMap(traffic.names()).draw(traffic);
  }

  private String draw(TrafficMatrix.Snapshot traffic) {
    int count = traffic.names().size();
    int width = Math.max(labels + count * CELL + 10, COLOURS.size() * LEGEND_STEP);
    int height = labels + count * CELL + LEGEND;
    Scale scale = Scale.of(traffic);
    svg.append("<div style=\"overflow-x:auto\"><svg width=\"").append(width);
    svg.append("\" height=\"").append(height);
    svg.append("\" role=\"img\" aria-label=\"Bytes that rows read from columns\"");
    svg.append(" font-size=\"10\" fill=\"currentColor\">");
    for (int i = 0; i < count; i++) {
      label(i, traffic.names().get(i));
    }
    List<String> names = traffic.names().stream().map(Texts::escape).toList();
    svg.append("<g stroke=\"#888\" stroke-width=\"0.5\">");
    for (int row = 0; row < count; row++) {
      for (int column = 0; column < count; column++) {
        long amount = traffic.bytes().get(row).get(column);
        if (amount > 0) {
          cell(row, column, scale.colour(amount));
          svg.append("<title>").append(names.get(row)).append(" read ");
          svg.append(bytes(amount)).append(" from ").append(names.get(column));
          svg.append("</title></rect>");
        }
      }
    }
    svg.append("</g>");
    frame(count);
    legend(scale, labels + count * CELL + 14);
    return svg.append("</svg></div>").toString();
  }

  private void label(int i, String name) {
    String text =
        escape(name.length() > LONGEST_NAME ? name.substring(0, LONGEST_NAME - 1) + "…" : name);
    int middle = labels + i * CELL + CELL - 4;
    svg.append("<text x=\"%d\" y=\"%d\" text-anchor=\"end\">".formatted(labels - 4, middle));
    svg.append(text).append("</text>");
    svg.append("<text transform=\"translate(%d,%d) rotate(-90)\">".formatted(middle, labels - 4));
    svg.append(text).append("</text>");
  }

  private void cell(int row, int column, String colour) {
    svg.append("<rect x=\"").append(labels + column * CELL);
    svg.append("\" y=\"").append(labels + row * CELL);
    svg.append("\" width=\"14\" height=\"14\" fill=\"").append(colour).append("\">");
  }

  private void frame(int count) {
    svg.append(
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\""
            .formatted(labels, labels, count * CELL, count * CELL));
    svg.append(" stroke=\"currentColor\"/>");
    svg.append("<text x=\"4\" y=\"12\">Row: reader. Column: source of the bytes.</text>");
  }

  private void legend(Scale scale, int y) {
    for (int i = 0; i < COLOURS.size(); i++) {
      int x = 4 + i * LEGEND_STEP;
      svg.append(
          "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"10\" fill=\"%s\" stroke=\"#888\"/>"
              .formatted(x, y - 9, COLOURS.get(i)));
      svg.append("<text x=\"%d\" y=\"%d\">≥ %s</text>".formatted(x, y + 12, bytes(scale.from(i))));
    }
  }

  /**
   * Assigns colours to the bytes between the least and the most. Each begins at twice the bytes of
   * the one before, or more, so that small differences stay small.
   */
  private record Scale(long least, long most) {
    static Scale of(TrafficMatrix.Snapshot traffic) {
      long least = Long.MAX_VALUE;
      long most = 1;
      for (List<Long> row : traffic.bytes()) {
        for (long amount : row) {
          least = amount > 0 ? Math.min(least, amount) : least;
          most = Math.max(most, amount);
        }
      }
      return new Scale(Math.min(least, Math.max(1, most >> COLOURS.size())), most);
    }

    String colour(long amount) {
      double part =
          most == least ? 1 : Math.log((double) amount / least) / Math.log((double) most / least);
      return COLOURS.get(Math.min(COLOURS.size() - 1, (int) (part * COLOURS.size())));
    }

    /** The least bytes of a colour. */
    long from(int colour) {
      double part = (double) colour / COLOURS.size();
      return Math.round(least * Math.pow((double) most / least, part));
    }
  }
}
