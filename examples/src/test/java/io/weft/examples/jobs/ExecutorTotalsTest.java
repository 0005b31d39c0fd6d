package io.weft.examples.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ExecutorTotalsTest {
  private static final ExecutorTotals ONE = new ExecutorTotals(1, 3, 4, 5, 6, 7);

  @Test
  void sumsAddExecutors() {
    assertThat(ONE.plus(ONE)).isEqualTo(new ExecutorTotals(2, 6, 8, 10, 12, 14));
    assertThat(ExecutorTotals.NONE.plus(ONE)).isEqualTo(ONE);
  }

  @Test
  void differencesKeepTheExecutorCount() {
    assertThat(ONE.plus(ONE).since(ONE)).isEqualTo(new ExecutorTotals(2, 3, 4, 5, 6, 7));
    assertThat(ONE.readBytes()).isEqualTo(12);
  }
}
