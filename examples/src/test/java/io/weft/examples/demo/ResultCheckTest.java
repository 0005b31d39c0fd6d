package io.weft.examples.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class ResultCheckTest {
  private static final List<String> ROWS = List.of("a", "b", "b");

  @Test
  void anotherOrderIsADifferenceOnlyIfTheOrderCounts() {
    assertThat(QueryDuel.ResultCheck.difference(ROWS, List.of("b", "a", "b"), false)).isEmpty();
    assertThat(QueryDuel.ResultCheck.difference(ROWS, List.of("b", "a", "b"), true))
        .hasValueSatisfying(text -> assertThat(text).contains("row 1 is a", "and b under Weft"));
    assertThat(QueryDuel.ResultCheck.difference(ROWS, ROWS, true)).isEmpty();
  }

  @Test
  void anExtraRowIsADifference() {
    assertThat(QueryDuel.ResultCheck.difference(ROWS, List.of("a", "a", "b"), false))
        .hasValue("Weft has a row too many: a");
  }

  @Test
  void aMissingRowIsADifference() {
    assertThat(QueryDuel.ResultCheck.difference(ROWS, List.of("a", "b"), false))
        .hasValue("3 rows under Spark, 2 under Weft");
  }
}
