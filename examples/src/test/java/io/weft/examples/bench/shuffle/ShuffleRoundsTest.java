package io.weft.examples.bench.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class ShuffleRoundsTest {
  @Test
  void theTimeOfTheNextRoundIsTheMeanOfAllBefore() {
    Duration share = Duration.ofSeconds(12);
    long elevenSeconds = Duration.ofSeconds(11).toNanos();
    assertThat(ShuffleRounds.fits(elevenSeconds, 9 + 2, share)).isTrue();
    assertThat(ShuffleRounds.fits(elevenSeconds, 1 + 2, share)).isFalse();
  }
}
