package io.weft.examples.terminal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.weft.examples.terminal.TextTable.Align;
import org.junit.jupiter.api.Test;

class TextTableTest {
  private static TextTable table() {
    return new TextTable()
        .column("name", Align.LEFT)
        .column("s", Align.RIGHT)
        .row("a|b", "1.5")
        .separator()
        .row("× copy", "12.0");
  }

  @Test
  void columnsAreAsWideAsTheirWidestCell() {
    assertThat(table().toText())
        .isEqualTo(
            """
            name       s
            ──────  ────
            a|b      1.5
            ──────  ────
            × copy  12.0
            """);
  }

  @Test
  void linesDoNotEndInSpaces() {
    TextTable table = new TextTable().columns(Align.LEFT, "left", "last").row("x", "");
    assertThat(table.toText().lines()).noneMatch(line -> line.endsWith(" "));
  }

  @Test
  void markdownKeepsAlignmentAndEscapesBars() {
    assertThat(table().toMarkdown())
        .isEqualTo(
            """
            | name | s |
            | --- | ---: |
            | a\\|b | 1.5 |
            | × copy | 12.0 |
            """);
  }

  @Test
  void aRowNeedsACellForEachColumn() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> table().row("only one"))
        .withMessageContaining("1 cells for 2 columns");
  }
}
