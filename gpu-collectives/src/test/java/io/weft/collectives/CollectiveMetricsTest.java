package io.weft.collectives;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.CollectiveMetrics.Total;
import org.junit.jupiter.api.Test;

class CollectiveMetricsTest {
  @Test
  void bytesTimesAndWaitsAddUpByAlgorithm() {
    CollectiveMetrics metrics = new CollectiveMetrics();
    metrics.count(OperationKind.ALL_REDUCE, Algorithm.ONE_SHOT, 100, 7, 3);
    metrics.count(OperationKind.BROADCAST, Algorithm.ONE_SHOT, 50, 2, 1);
    metrics.countFailure(OperationKind.BROADCAST, 9, 8);
    metrics.count(OperationKind.ALL_REDUCE, Algorithm.IN_PLACE, 1000, 10, 0);
    assertThat(metrics.total(Algorithm.ONE_SHOT)).isEqualTo(new Total(2, 0, 150, 9, 4));
    assertThat(metrics.total(Algorithm.UNFINISHED)).isEqualTo(new Total(0, 1, 0, 9, 8));
    assertThat(metrics.total(Algorithm.IN_PLACE)).isEqualTo(new Total(1, 0, 1000, 10, 0));
    assertThat(metrics.total(Algorithm.RING)).isEqualTo(new Total(0, 0, 0, 0, 0));
    assertThat(metrics.calls(OperationKind.ALL_REDUCE)).isEqualTo(2);
  }
}
