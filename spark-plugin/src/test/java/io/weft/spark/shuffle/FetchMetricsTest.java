package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.shuffle.ShuffleBlocks.FetchMetrics;
import org.apache.spark.executor.TempShuffleReadMetrics;
import org.junit.jupiter.api.Test;

class FetchMetricsTest {
  private final TempShuffleReadMetrics reported = new TempShuffleReadMetrics();
  private final FetchMetrics metrics = new FetchMetrics(reported, false);

  @Test
  void blocksOfThisHostAreLocal() {
    metrics.local(1, 10);
    metrics.sameHost(2, 20);
    metrics.remote(1, 3, 30);
    assertThat(reported.localBlocksFetched()).isEqualTo(3);
    assertThat(reported.localBytesRead()).isEqualTo(30);
    assertThat(reported.remoteBlocksFetched()).isEqualTo(3);
    assertThat(reported.remoteBytesRead()).isEqualTo(30);
  }

  @Test
  void theBlocksOfAMapOutputCountAsOneInBatches() {
    FetchMetrics batches = new FetchMetrics(reported, true);
    batches.local(5, 10);
    batches.sameHost(0, 0);
    batches.sameHost(2, 20);
    batches.remote(1, 1, 30);
    batches.remote(0, 1, 30);
    assertThat(reported.localBlocksFetched()).isEqualTo(2);
    assertThat(reported.remoteBlocksFetched()).isEqualTo(1);
    assertThat(reported.remoteBytesRead()).isEqualTo(60);
  }

  @Test
  void shortWaitsAddUpToMilliseconds() {
    for (int i = 0; i < 10; i++) {
      metrics.waited(250_000);
    }
    assertThat(reported.fetchWaitTime()).isEqualTo(2);
    metrics.waited(3_500_000);
    assertThat(reported.fetchWaitTime()).isEqualTo(6);
  }
}
