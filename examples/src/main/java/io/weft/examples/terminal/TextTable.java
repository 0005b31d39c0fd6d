package io.weft.examples.terminal;

import java.util.ArrayList;
import java.util.List;

/** A table of text, for a terminal or as Markdown. Not thread-safe. */
public final class TextTable {
  /** The alignment of a column. */
  public enum Align {
    LEFT,
    RIGHT
  }

  private record Column(String title, Align align) {}

  private final List<Column> columns = new ArrayList<>();
  private final List<List<String>> rows = new ArrayList<>();

  /** Adds a column; all columns come before the first row. */
  public TextTable column(String title, Align align) {
    columns.add(new Column(title, align));
    return this;
  }

  /** Adds columns with the same alignment. */
  public TextTable columns(Align align, String... titles) {
    for (String title : titles) {
      column(title, align);
    }
    return this;
  }

  /**
   * Adds a row.
   *
   * @throws IllegalArgumentException if the number of cells is not the number of columns
   */
  public TextTable row(String... cells) {
    if (cells.length != columns.size()) {
      throw new IllegalArgumentException(
          "a row of " + cells.length + " cells for " + columns.size() + " columns");
    }
    rows.add(List.of(cells));
    return this;
  }

  /** Adds a line between the rows before and after. */
  public TextTable separator() {
    rows.add(List.of());
    return this;
  }

  /** Returns plain text; columns are as wide as their widest cell. It ends with a line break. */
  public String toText() {
    int[] widths = widths();
    StringBuilder text = new StringBuilder();
    line(text, titles(), widths);
    rule(text, widths);
    for (List<String> row : rows) {
      if (row.isEmpty()) {
        rule(text, widths);
      } else {
        line(text, row, widths);
      }
    }
    return text.toString();
  }

  /** Returns a Markdown table without separators. */
  public String toMarkdown() {
    StringBuilder text = new StringBuilder();
    markdown(text, titles());
    markdown(text, columns.stream().map(c -> c.align() == Align.RIGHT ? "---:" : "---").toList());
    rows.stream().filter(row -> !row.isEmpty()).forEach(row -> markdown(text, row));
    return text.toString();
  }

  private List<String> titles() {
    return columns.stream().map(Column::title).toList();
  }

  private int[] widths() {
    int[] widths = new int[columns.size()];
    for (int i = 0; i < widths.length; i++) {
      widths[i] = length(columns.get(i).title());
    }
    for (List<String> row : rows) {
      for (int i = 0; i < row.size(); i++) {
        widths[i] = Math.max(widths[i], length(row.get(i)));
      }
    }
    return widths;
  }

  private void line(StringBuilder text, List<String> cells, int[] widths) {
    int start = text.length();
    for (int i = 0; i < cells.size(); i++) {
      String space = " ".repeat(widths[i] - length(cells.get(i)));
      text.append(i == 0 ? "" : "  ");
      if (columns.get(i).align() == Align.RIGHT) {
        text.append(space).append(cells.get(i));
      } else {
        text.append(cells.get(i)).append(space);
      }
    }
    while (text.length() > start && text.charAt(text.length() - 1) == ' ') {
      text.setLength(text.length() - 1);
    }
    text.append('\n');
  }

  private static void rule(StringBuilder text, int[] widths) {
    for (int i = 0; i < widths.length; i++) {
      text.append(i == 0 ? "" : "  ").append("─".repeat(widths[i]));
    }
    text.append('\n');
  }

  private static void markdown(StringBuilder text, List<String> cells) {
    text.append('|');
    cells.forEach(cell -> text.append(' ').append(cell.replace("|", "\\|")).append(" |"));
    text.append('\n');
  }

  private static int length(String cell) {
    return cell.codePointCount(0, cell.length());
  }
}
