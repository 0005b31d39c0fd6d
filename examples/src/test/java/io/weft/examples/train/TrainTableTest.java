package io.weft.examples.train;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class TrainTableTest {
  private static TrainOnce.Outcome outcome(
      TrainOnce.HandOff handOff, double seconds, double stepSeconds) {
    RankReport rank = new RankReport(0, 0, 120, 30_720, 0.5, stepSeconds, 0.25, 4_000, 7);
    return new TrainOnce.Outcome(handOff, seconds, 2_000_000, List.of(rank), 0.875);
  }

  private static final TrainOnce.Outcome FEED = outcome(TrainOnce.HandOff.FEED, 5, 4);
  private static final TrainOnce.Outcome SLOW_FEED = outcome(TrainOnce.HandOff.FEED, 7, 4);
  private static final TrainOnce.Outcome PARQUET = outcome(TrainOnce.HandOff.PARQUET, 12, 4);

  @Test
  void everyTrainingIsARow() {
    List<String> lines =
        TrainTable.of(List.of(FEED, PARQUET))
            .lines()
            .map(line -> line.strip().replaceAll(" +", " "))
            .toList();
    assertThat(lines).contains("Weft feed 5.00 1.00 4.00 2.00 MB 4.00 kB 120 0.250 0.5000 87.5 %");
    assertThat(lines.get(3)).startsWith("Spark + Parquet 12.0 8.00 4.00");
  }

  @Test
  void stepsBeforeARestartCount() {
    RankReport rank = new RankReport(0, 100, 20, 5_120, 0.5, 1, 0.25, 4_000, 7);
    assertThat(
            TrainTable.of(
                List.of(new TrainOnce.Outcome(TrainOnce.HandOff.FEED, 5, 0, List.of(rank), 0.5))))
        .contains(" 120 ");
  }

  /** Medians: 6 s with 2 s of hand-off, compared with 12 s and 8 s. */
  @Test
  void bothHandOffsAreCompared() {
    assertThat(TrainTable.summary(List.of(FEED, PARQUET, SLOW_FEED)))
        .startsWith(
            "By the feed the hand-off is 4.00× as fast as by Spark's shuffle and Parquet, and the"
                + " whole 2.00×, by the medians.\n\"hand-off\" is");
  }

  @Test
  void oneHandOffAloneHasNoComparison() {
    assertThat(TrainTable.summary(List.of(FEED))).startsWith("\"hand-off\" is");
  }
}
