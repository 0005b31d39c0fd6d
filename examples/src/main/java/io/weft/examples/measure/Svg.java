package io.weft.examples.measure;

import java.util.Locale;

/** Writes a chart in SVG, with rectangles, lines and text. Not thread-safe. */
public final class Svg {
  /** The point of a text that its position refers to. */
  public enum Anchor {
    START,
    MIDDLE,
    END
  }

  private final StringBuilder body = new StringBuilder();
  private final int width;

  /** Creates an empty picture. */
  public Svg(int width) {
    this.width = width;
  }

  /** Adds a filled rectangle with round corners. */
  public void rectangle(double x, double y, double w, double h, double radius, String color) {
    add(
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" fill=\"%s\"/>",
        x, y, w, h, radius, color);
  }

  /** Adds a straight line. */
  public void line(double x1, double y1, double x2, double y2, String color, double strokeWidth) {
    add(
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\""
            + " stroke-width=\"%.1f\"/>",
        x1, y1, x2, y2, color, strokeWidth);
  }

  /** Adds a line of text. */
  public void text(
      double x, double y, String text, int size, String color, Anchor anchor, boolean bold) {
    add(
        "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" fill=\"%s\" text-anchor=\"%s\"%s>%s</text>",
        x,
        y,
        size,
        color,
        anchor.name().toLowerCase(Locale.ROOT),
        bold ? " font-weight=\"600\"" : "",
        escaped(text));
  }

  /** Returns the whole picture. */
  public String toDocument(int height, String title) {
    return String.format(
        Locale.ROOT,
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" \
        font-family="Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', \
        sans-serif" role="img">
        <title>%s</title>
        <rect width="%d" height="%d" fill="#ffffff"/>
        %s</svg>
        """,
        width,
        height,
        width,
        height,
        escaped(title),
        width,
        height,
        body);
  }

  static String escaped(String text) {
    return text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\"", "&quot;");
  }

  private void add(String format, Object... values) {
    body.append(String.format(Locale.ROOT, format, values)).append('\n');
  }
}
