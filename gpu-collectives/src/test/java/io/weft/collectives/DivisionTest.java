package io.weft.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class DivisionTest {
  private static final long[] DIVIDENDS = {
    0, 1, 2, 3, 7, 8, 9, 1000, Integer.MAX_VALUE, 1L << 31, (1L << 40) + 5, Long.MAX_VALUE
  };

  private static final long[] DIVISORS = {
    1, 2, 3, 4, 5, 7, 8, 96, 128, Integer.MAX_VALUE, 1L << 31, 1L << 62, Long.MAX_VALUE
  };

  @Test
  void quotientsAreThoseOfJava() {
    for (long dividend : DIVIDENDS) {
      for (long divisor : DIVISORS) {
        assertThat(Division.quotient(dividend, divisor))
            .as("%d / %d", dividend, divisor)
            .isEqualTo(dividend / divisor);
        assertThat(Division.isWhole(dividend, divisor))
            .as("%d %% %d", dividend, divisor)
            .isEqualTo(dividend % divisor == 0);
      }
    }
  }
}
