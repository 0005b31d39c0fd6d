package io.weft.tests.support;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The comparison that all system tests rely on must be able to fail. */
class RowsTest {
  @Test
  void acceptsTheSameRows() {
    assertThat(Rows.difference(List.of("a", "a", "b"), List.of("a", "a", "b"))).isEmpty();
  }

  @Test
  void namesWhatIsMissingAndWhatIsTooMuch() {
    assertThatThrownBy(() -> Rows.assertSame("q", List.of("a", "a", "b"), List.of("a", "b", "c")))
        .isInstanceOf(AssertionError.class)
        .hasMessageContainingAll("missing (1 times): a", "not expected (1 times): c");
  }

  @Test
  void seesThatARowCameTwice() {
    assertThat(Rows.difference(List.of("a"), List.of("a", "a")))
        .get()
        .asString()
        .contains("1 rows expected, 2 found");
  }

  @Test
  void seesAnotherOrder() {
    assertThat(Rows.difference(List.of("a", "b"), List.of("b", "a")))
        .get()
        .asString()
        .contains("another order");
  }
}
