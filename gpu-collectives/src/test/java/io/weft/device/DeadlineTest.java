package io.weft.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class DeadlineTest {
  @Test
  void zeroHasExpired() {
    assertThat(Deadline.after(Duration.ZERO).expired()).isTrue();
    assertThat(Deadline.after(Duration.ZERO).remainingNanos()).isZero();
  }

  @Test
  void veryLongOnesDoNotOverflow() {
    Deadline deadline = Deadline.after(Duration.ofDays(1_000_000_000L));
    assertThat(deadline.expired()).isFalse();
    assertThat(deadline.remainingNanos()).isGreaterThan(Duration.ofDays(100_000).toNanos());
  }

  @Test
  void earlierByKeepsTheStart() {
    Deadline deadline = Deadline.after(Duration.ofSeconds(100)).earlierBy(40_000_000_000L);
    assertThat(deadline.length()).isEqualTo(Duration.ofSeconds(60));
    assertThat(deadline.earlierBy(Long.MAX_VALUE).expired()).isTrue();
  }

  @Test
  void textIsReadable() {
    assertThat(Deadline.describe(30_000_000_000L)).isEqualTo("30 s");
    assertThat(Deadline.describe(1_500_000_000L)).isEqualTo("1.5 s");
    assertThat(Deadline.describe(250_000_000L)).isEqualTo("250 ms");
  }

  @Test
  void negativeIsRefused() {
    assertThatThrownBy(() -> Deadline.after(Duration.ofSeconds(-1)))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
