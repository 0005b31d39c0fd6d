package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Chooses the report of a map task that counts. */
class MapRowsTest {
  private static final MapRows FIRST = MapRows.of(0, 10, 5, 6);
  private static final MapRows ATTEMPT = MapRows.of(1, 11, 7, 8);
  private static final MapRows OTHER_ATTEMPT = MapRows.of(1, 12, 9, 0);

  @Test
  void theAttemptWithTheRegisteredOutputCountsInAnyReportOrder() {
    int[][] wanted = {{5, 6}, {7, 8}};
    assertThat(MapRows.written(List.of(FIRST, ATTEMPT, OTHER_ATTEMPT), 10, 11))
        .isDeepEqualTo(wanted);
    assertThat(MapRows.written(List.of(OTHER_ATTEMPT, FIRST, ATTEMPT), 10, 11))
        .isDeepEqualTo(wanted);
    assertThat(MapRows.written(List.of(OTHER_ATTEMPT, ATTEMPT, FIRST), 10, 12))
        .isDeepEqualTo(new int[][] {{5, 6}, {9, 0}});
  }

  @Test
  void theLastReportStandsInForAnOutputThatWasJustLost() {
    assertThat(MapRows.written(List.of(FIRST, ATTEMPT, OTHER_ATTEMPT), 10, MapRows.UNREGISTERED))
        .isDeepEqualTo(new int[][] {{5, 6}, {9, 0}});
  }

  @Test
  void anOutputWithoutAReportIsAnErrorRatherThanNoRows() {
    assertThatThrownBy(() -> MapRows.written(List.of(FIRST, OTHER_ATTEMPT), 10, 11))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("map task 1 of a feed did not report the rows of its output 11");
    assertThat(MapRows.written(List.of())).isEmpty();
  }
}
