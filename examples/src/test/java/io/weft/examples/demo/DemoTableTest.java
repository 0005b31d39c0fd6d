package io.weft.examples.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.measure.Spread;
import io.weft.examples.tpch.TpchQuery;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class DemoTableTest {
  private static final List<QueryDuel.Outcome> OUTCOMES =
      List.of(
          new QueryDuel.Outcome(
              TpchQuery.Q3,
              10,
              Spread.of(4, 2, 3),
              Spread.of(1.5),
              Optional.empty(),
              new ExecutorTotals(2, 5_000_000, 6_000_000, 0, 0, 0)),
          new QueryDuel.Outcome(
              TpchQuery.Q18,
              9,
              Spread.of(1),
              Spread.of(2),
              Optional.of("row 1"),
              new ExecutorTotals(2, 0, 0, 700, 80, 0)));

  @Test
  void showsTimesRatiosAndPathsOfBytes() {
    List<String> lines = DemoTable.render(OUTCOMES).lines().map(DemoTableTest::spaced).toList();
    assertThat(lines).contains("Q3 10 3.00 1.50 2.00× yes 5.00 MB 6.00 MB 0 B 0 B");
    assertThat(lines).contains("Q18 9 1.00 2.00 0.50× NO 0 B 0 B 700 B 80 B");
    assertThat(lines.get(lines.size() - 1))
        .isEqualTo("all 4.00 3.50 1.00× 1 of 2 5.00 MB 6.00 MB 700 B 80 B");
  }

  @Test
  void theTotalRatioIsTheGeometricMean() {
    assertThat(DemoTable.meanRatio(OUTCOMES)).isCloseTo(1, within(1e-12));
  }

  private static String spaced(String line) {
    return line.strip().replaceAll(" +", " ");
  }
}
