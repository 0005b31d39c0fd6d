package io.weft.examples.bench.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.weft.examples.jobs.ExecutorTotals;
import io.weft.examples.jobs.JobCost;
import io.weft.examples.side.SideOptions;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ShuffleSamplesTest {
  private final ShuffleRounds.Samples samples =
      new ShuffleRounds.Samples(SideOptions.spark(Map.of()));

  private static JobCost cost(double seconds, double cpuSeconds) {
    return new JobCost(seconds, cpuSeconds, 0, 100, 0, 0);
  }

  private static ExecutorTotals moved(long spilled, long fresh) {
    return new ExecutorTotals(2, 10, 20, 30, spilled, fresh);
  }

  @Test
  void aShuffleTimeIsTheJobLessTheMedianOfTheJobWithoutShuffle() {
    samples.base(cost(1, 0.5), 1);
    samples.base(cost(9, 0.5), 1);
    samples.base(cost(2, 0.7), 1);
    samples.job(cost(3, 1.5), 4, moved(0, 0));
    samples.job(cost(5, 2.5), 4, moved(0, 0));
    samples.job(cost(4, 3.5), 4, moved(0, 0));
    ShuffleReport.SideResult result = samples.result();
    assertThat(result.baseSeconds().median()).isEqualTo(2);
    assertThat(result.shuffleSeconds().values()).containsExactly(1.0, 2.0, 3.0);
    assertThat(result.shuffleCpuSeconds().median()).isCloseTo(2, within(1e-12));
    assertThat(result.shuffleProcessCpuSeconds().median()).isEqualTo(3);
  }

  @Test
  void aQueryTimeIsThatOfTheWholeJob() {
    samples.job(cost(3, 1.5), 4, moved(0, 0));
    ShuffleReport.SideResult result = samples.result();
    assertThat(result.baseSeconds()).isNull();
    assertThat(result.shuffleSeconds().median()).isEqualTo(3);
  }

  @Test
  void freshMemoryOfTheWarmUpIsCountedSeparately() {
    samples.warmUp(moved(0, 500));
    samples.job(cost(1, 1), 4, moved(5, 0));
    samples.job(cost(1, 1), 4, moved(6, 7));
    ShuffleReport.SideResult result = samples.result();
    assertThat(result.firstFreshBytes()).isEqualTo(500);
    assertThat(result.laterFreshBytes()).isEqualTo(7);
    assertThat(result.spilledBytes()).isEqualTo(11);
    assertThat(result.sameHostBytes()).isEqualTo(20);
  }
}
